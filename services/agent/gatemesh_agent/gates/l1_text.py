"""L1, text sanity: judges the text of one choice while it arrives."""

from collections.abc import Mapping, Sequence
from typing import Any

from gatemesh_agent.gates.characters import Characters
from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.dialogue import Dialogue
from gatemesh_agent.gates.doubles import doubled_pieces, doubled_words
from gatemesh_agent.gates.endings import is_bare_label, is_empty, only_one_sign, truncated
from gatemesh_agent.gates.judgement import Finding, Judgement, passed, skipped, text_failure
from gatemesh_agent.gates.languages import Languages
from gatemesh_agent.gates.markers import Markers
from gatemesh_agent.gates.mojibake import Mojibake
from gatemesh_agent.gates.prose import Staleness
from gatemesh_agent.gates.repetition import Repetition
from gatemesh_agent.gates.scripts import Scripts
from gatemesh_agent.gates.soup import (
    BLOB_PASSAGE,
    HEX_LIMIT,
    WORDS_PASSAGE,
    encoded_blob,
    glued_words,
    is_newly_unbroken,
    may_be_glued,
    wordless,
)
from gatemesh_agent.gates.sourcecode import reads_as_code, runs_on
from gatemesh_agent.gates.structure import Document, bad_calls, broken_json, written_call
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.window import CHECKPOINT, TextWindow
from gatemesh_common.gates import CUT_BY_LIMIT, Ending, TokenStep
from gatemesh_common.messages import CheckLevel, Reason

Calls = Sequence[Mapping[str, Any]]
STOPPED = "stop"
CALLED = "tool_calls"
WISHES = (Topic.REPEATING, Topic.PLAYFUL, Topic.SIGNS)
HALF_BEAT = 32
"""Characters between two looks for words that stand twice."""
TURN_REACH = 64
ONSET_REACH = 192
"""Behind so much text in ASCII alone, other letters are looked at as they come."""
NEW_LINE = "\\n"
"""A line break written out, which may be one of a text that was escaped twice."""
FAULTS_IN_CODE = frozenset({Reason.MOJIBAKE, Reason.SELF_DIALOGUE, Reason.ENCODED_BLOB})
"""What is a fault in a program too, or was judged with programs in mind."""


class TextGate:
    """Judges one choice; reports a fault once, as soon as the text proves it."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._hot = context.hot
        self._window = TextWindow()
        self._document = Document(context)
        self._repetition = Repetition(context)
        self._characters = Characters(context)
        self._markers = Markers(context)
        self._mojibake = Mojibake(context)
        self._scripts = Scripts(context)
        self._languages = Languages(context)
        self._dialogue = Dialogue(context)
        self._staleness = Staleness(context)
        self._visible = False
        self._long_word_at = 0
        """Where the latest passage ended that holds a word as long as a blob."""
        self._failure: Judgement | None = None

    @property
    def failure(self) -> Judgement | None:
        """The failure that was reported, if any."""
        return self._failure

    @property
    def suspicion(self) -> float:
        """Length of a loop under way as a share of what is allowed."""
        return self._repetition.suspicion

    def feed_steps(self, steps: Sequence[TokenStep]) -> None:
        """Log probabilities say nothing about text."""

    def feed_text(self, delta: str) -> Judgement | None:
        """Take the next piece of text; return the failure that it proves, once."""
        if self._failure is not None or not delta:
            return None
        if self._document.wanted:
            self._document.feed(delta)
        for _ in self._window.blocks(delta):
            finding = self._block()
            if finding is not None:
                return self._fail(finding)
        return None

    def finish(self, ending: Ending) -> Judgement:
        """Conclude; without a finish reason the answer was cut off and its end proves nothing."""
        if self._failure is None:
            self._window.rest()
            finding = self._block() or self._passage(last=True)
            if finding is None and ending.finish_reason is not None:
                finding = self._end(
                    ending.finish_reason, ending.tool_calls, other_output=ending.other_output
                )
            if finding is not None:
                self._fail(finding)
        if self._failure is not None:
            return self._failure
        if ending.finish_reason is None:
            return skipped(CheckLevel.L1, Reason.CUT_SHORT)
        return passed(CheckLevel.L1)

    def _fail(self, finding: Finding) -> Judgement:
        self._failure = text_failure(finding)
        return self._failure

    def _block(self) -> Finding | None:
        window = self._window
        if not self._visible:
            self._visible = not is_empty(window.last(64))
        finding = self._repetition.scan(window)
        if finding is None and not self._hot:
            finding = self._characters.scan(window) or self._markers.scan(window)
        if finding is None and window.end:
            if window.at_checkpoint:
                return self._passage(last=False)
            if not self._hot:
                return self._hurried()
        return finding

    def _hurried(self) -> Finding | None:
        """Run single rules ahead of the checkpoint where the newest block calls for them."""
        window, context = self._window, self._context
        finding = doubled_words(window, context) if window.end % HALF_BEAT == 0 else None
        if finding is None and is_newly_unbroken(window):
            finding = glued_words(window, context) or encoded_blob(window, context, last=False)
        finding = finding or self._called_for(window.since(window.fresh - 1))
        return None if finding is None or self._is_sound(finding) else finding

    def _called_for(self, block: str) -> Finding | None:
        """Run the rule whose sign stands in a block."""
        window = self._window
        is_quiet = window.quiet >= len(block)
        if not is_quiet and NEW_LINE in block:
            return self._mojibake.hurried(window)
        if "\n" in block and ":" in window.last(TURN_REACH):
            return self._dialogue.scan(window)
        if not is_quiet and not block.isascii() and window.last(ONSET_REACH)[:CHECKPOINT].isascii():
            return self._scripts.scan(window) or wordless(window, self._context)
        return None

    def _passage(self, *, last: bool) -> Finding | None:
        """Run the rules that look back over a whole passage."""
        window, context = self._window, self._context
        words = window.last(WORDS_PASSAGE).split()
        sizes = list(map(len, words))
        if max(sizes, default=0) > HEX_LIMIT:
            self._long_word_at = window.end
        finding = self._dialogue.scan(window, last=last) or self._staleness.scan(window, last=last)
        if finding is None and not context.hot:
            finding = (
                self._mojibake.scan(window, last=last)
                or self._scripts.scan(window, last=last)
                or self._languages.scan(window)
                or doubled_pieces(window, context, words)
                or (glued_words(window, context) if may_be_glued(sizes) else None)
                or (encoded_blob(window, context, last=last) if self._may_hold_blob else None)
            )
            if finding is None:
                return wordless(window, context, words)
        return None if finding is None or self._is_sound(finding) else finding

    @property
    def _may_hold_blob(self) -> bool:
        """True where a word of the passage that is searched for blobs is as long as one."""
        return bool(self._long_word_at) and self._window.end - self._long_word_at < BLOB_PASSAGE

    def _is_sound(self, finding: Finding) -> bool:
        """Return True for what looks odd in prose and is usual in a program."""
        if finding.reason in FAULTS_IN_CODE or self._scripts.is_jumble:
            return False
        return reads_as_code(self._window) and not runs_on(self._window)

    def _end(self, finish_reason: str, calls: Calls, *, other_output: bool) -> Finding | None:
        """Run the rules that need to know how the answer ended."""
        window, context = self._window, self._context
        if calls or finish_reason == CALLED:
            return self._called(calls)
        if only_one_sign(window.tail) and not context.asks(Topic.DRAWING, *WISHES):
            return Finding(Reason.REPETITION, float(len(window.tail)), 0.0, 0, window.end)
        if not self._visible or is_empty(window.tail) or self._is_label():
            excused = other_output or not self._must_show(finish_reason)
            return None if excused else Finding(Reason.EMPTY, 0.0, 1.0, 0, window.end)
        if not context.hot:
            excused = finish_reason == CUT_BY_LIMIT
            finding = self._characters.finish(window, excused_end=excused)
            if finding is not None:
                return finding
        return self._stopped() if finish_reason == STOPPED and not context.stops else None

    def _is_label(self) -> bool:
        """Return True for an answer that holds only the name of a turn or bare emphasis."""
        return is_bare_label(self._window.tail) and not self._context.asks(Topic.SIGNS)

    def _must_show(self, finish_reason: str) -> bool:
        """Return True when an answer without visible text is a fault."""
        if self._context.max_tokens is not None and self._context.max_tokens <= 1:
            return False
        if finish_reason == STOPPED:
            return self._context.chat and not self._context.stops
        return finish_reason == CUT_BY_LIMIT

    def _called(self, calls: Calls) -> Finding | None:
        if not calls:
            return Finding(Reason.BROKEN_TOOL_CALL, 0.0, 1.0, 0, self._window.end)
        return bad_calls(calls, self._context.tools)

    def _stopped(self) -> Finding | None:
        text = self._document.text
        if text is not None and self._context.demands_json:
            return broken_json(text, self._context.required_keys)
        if text is not None and self._context.tools is not None:
            finding = written_call(text, self._context.tools)
            if finding is not None:
                return finding
        return None if self._context.hot else truncated(self._window, self._context)
