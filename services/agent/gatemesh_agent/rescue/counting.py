"""Counts anew what a whole answer shows, where its engine counts more tokens than are usual."""

import asyncio

from gatemesh_agent.cases import Attempt
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.rescue.asking import Asking
from gatemesh_agent.stream import parse_plain
from gatemesh_agent.upstream import Reply
from gatemesh_agent.whole import HIDDEN_TOKENS, counted, hiding

OK = 200
LEAST_TOKENS = 64
WAIT_S = 2.0
"""Longest wait for the count: the answer is here."""
USUAL_BYTES = 3.2
"""Of a token of prose, in any script; numbers and programs have less, and are counted."""
SPELLED_OTHERWISE = 1.25
"""Engines may spell a text in more tokens than a tokenizer would."""


class Counting:
    """Has an engine spell its answer, and compares."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def hidden(self, attempt: Attempt, reply: Reply, body: bytes) -> Judgement | None:
        """Return what is at fault with an answer of which no log probabilities tell."""
        if attempt.wish.count or reply.status != OK or not reply.is_plain_json:
            return None
        request = attempt.case.request
        try:
            found = counted(request.asked, parse_plain(body, 0))
        except (ValueError, RecursionError):
            return None
        if found is None or not is_doubtful(*found):
            return None
        tokens, text = found
        try:
            async with asyncio.timeout(WAIT_S):
                spelled = await self._asking.count(request, text, attempt.instance.base_url)
        except TimeoutError:
            return None
        if spelled is None:
            return None
        limit = spelled * SPELLED_OTHERWISE + HIDDEN_TOKENS
        return hiding(tokens, limit) if tokens > limit else None


def is_doubtful(tokens: int, text: str) -> bool:
    """Return True for more tokens than a text of its length usually has."""
    shown = len(text.encode("utf-8", "surrogatepass"))
    return tokens >= LEAST_TOKENS and shown < USUAL_BYTES * tokens
