"""Marks of the tokeniser and of the chat template that belong to the engine, not to the text."""

from collections.abc import Iterator

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.window import TextWindow
from gatemesh_common.messages import Reason

REACH = 64
"""Longest mark; the look-back that finds one cut by a block."""
UNDECODED_LIMIT = 2
BYTE_WEIGHT = 2
OPEN_LIMIT = 2

SPECIAL = regex.compile(
    r"""<\|[\w./:\ -]{1,48}\|> | <\uff5c[^\uff5c<>\n]{1,48}\uff5c>
    | (?<!\?P|\\g)<(?:pad | unk | bos | eos | PAD | UNK | BOS | EOS)>
    | <(?:eod | eot | eom)> | </(?:assistant | im_end | eos)>\s*$
    | <(?:start | end)_of_(?:turn | image | text | audio)>
    | <(?:extra_id_ | unused | reserved_)\d{1,4}>
    | (?<=[^\s`])assistant(?:final|analysis|commentary)(?=[^\s`])
    | \[/?INST\] | <</?SYS>> | \[(?:PAD | UNK | CLS | SEP | MASK | BOS | EOS)\]""",
    regex.VERBOSE,
)
BARE = regex.compile(r"</?s>")
"""Sentence marks; also HTML for struck-out text, so they count only without a partner."""
UNDECODED = regex.compile(
    r"""(?<=[\p{L}\d.,;:!?)])[ĠĊ](?=[\p{L}ĠĊ(\"']) | (?<![\u2581-\u2588\s`])▁(?=\p{L})
    | ^▁(?=\p{L}) | (?<=\S\ )\#\#(?=\p{Ll}) | (?<=\p{L})@@\ (?=\p{L}) | (?<=\p{L})</w>
    | <0x[0-9A-F]{2}>""",
    regex.VERBOSE,
)
QUIET_LEADS = ("assistant",)
"""How marks begin that have no loud sign."""
LEADS = (*QUIET_LEADS, "<", "[", "Ġ", "Ċ", "▁", "##", "@@")
QUOTED = regex.compile(r"`[^`\n]{0,120}$")
TOOL_CALL = regex.compile(
    r"<tool_call>|</tool_call>|<function=\w|<\|python_tag\|>|\[TOOL_CALLS\]|<function_calls?>|<tool_use>"
)


class Markers:
    """Finds marks that leaked into the text."""

    __slots__ = ("_context", "_open", "_undecoded")

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._open = 0
        self._undecoded = 0

    def scan(self, window: TextWindow) -> Finding | None:
        """Look at the newest block, and as far back as a mark may reach."""
        text = window.since(window.fresh - REACH)
        if not may_hold_mark(text, quiet=window.quiet >= len(text)):
            return None
        start = window.end - len(text)
        fresh = window.fresh - start
        return self._special(text, start, fresh) or self._raw(text, start, fresh)

    def _special(self, text: str, start: int, fresh: int) -> Finding | None:
        for hit in self._marks(text, fresh):
            if QUOTED.search(text[: hit.start()]) is None and not self._context.asks(Topic.TOKENS):
                call = TOOL_CALL.match(hit.group())
                reason = Reason.BROKEN_TOOL_CALL if call else Reason.SPECIAL_TOKENS
                return Finding(reason, 1.0, 0.0, start + hit.start(), start + hit.end())
        return None

    def _marks(self, text: str, fresh: int) -> Iterator["regex.Match[str]"]:
        """Yield the marks that end in the newest block and have no innocent reading."""
        for hit in SPECIAL.finditer(text):
            if hit.end() > fresh:
                yield hit
        if self._context.tools is not None:
            yield from (hit for hit in TOOL_CALL.finditer(text) if hit.end() > fresh)
        for hit in BARE.finditer(text):
            if hit.end() > fresh:
                self._open += 1 if hit.group() == "<s>" else -1
                if not 0 <= self._open <= OPEN_LIMIT:
                    yield hit

    def _raw(self, text: str, start: int, fresh: int) -> Finding | None:
        # A mark counts when the character after it is known, so each one counts once.
        hits = [hit for hit in UNDECODED.finditer(text) if fresh <= hit.end() < len(text)]
        self._undecoded += sum(BYTE_WEIGHT if hit.group()[:2] == "<0" else 1 for hit in hits)
        if not hits or self._undecoded <= UNDECODED_LIMIT or self._context.asks(Topic.TOKENS):
            return None
        span = (start + hits[0].start(), start + hits[-1].end())
        return Finding(
            Reason.UNDECODED_TOKENS, float(self._undecoded), float(UNDECODED_LIMIT), *span
        )


def may_hold_mark(text: str, *, quiet: bool) -> bool:
    """Return True where a mark may begin; nearly every block has none."""
    for lead in QUIET_LEADS if quiet else LEADS:  # noqa: SIM110 (a third of the time of any)
        if lead in text:
            return True
    return False
