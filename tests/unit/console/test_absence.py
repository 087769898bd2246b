"""While the database is away, people are told at once."""

import pytest

from gatemesh_common.errors import DatabaseUnavailableError
from gatemesh_console.absence import AGAIN_S, Absence

AWAY = DatabaseUnavailableError("database: OperationalError")


class Hands:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


def test_nobody_waits_in_vain_and_one_tries() -> None:
    """A second after the last try, and not while another one is trying."""
    hands = Hands()
    absence = Absence(5.0, hands)
    absence.check()
    absence.begin(AWAY)
    with pytest.raises(DatabaseUnavailableError, match="OperationalError"):
        absence.check()
    hands.now_s += AGAIN_S
    absence.check()
    with pytest.raises(DatabaseUnavailableError):
        absence.check()
    absence.end()
    absence.check()


def test_a_try_whose_end_nobody_told_is_made_again() -> None:
    """A browser that leaves takes its question with it."""
    hands = Hands()
    absence = Absence(5.0, hands)
    absence.begin(AWAY)
    hands.now_s += AGAIN_S
    absence.check()
    hands.now_s += 5.0
    absence.check()
