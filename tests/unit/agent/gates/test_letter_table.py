"""The packed table of letter groups."""

import base64

from gatemesh_agent.gates.letter_table import ENGLISH
from gatemesh_agent.gates.letters import LETTERS


def test_one_bit_for_each_group() -> None:
    """Nothing is cut off, and English knows a quarter of what could be written."""
    bits = base64.b64decode(ENGLISH)
    groups = len(LETTERS) ** 3
    assert len(bits) == (groups + 7) // 8
    known = sum(byte.bit_count() for byte in bits)
    assert 0.2 * groups < known < 0.3 * groups
