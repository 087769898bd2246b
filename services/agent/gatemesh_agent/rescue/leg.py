"""One instance's part of a stream: judged event by event, held in doubt, cut when bad. Pure."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from gatemesh_agent.engine_errors import ENGINE_DIED, may_pass, status_of
from gatemesh_agent.gates.judgement import GATE_VERSION, Judgement
from gatemesh_agent.gates.l3_distribution import Follower
from gatemesh_agent.judging import AnswerJudge
from gatemesh_agent.reading import Part, Reading
from gatemesh_agent.requests import Route
from gatemesh_agent.rescue.doubts import Doubts, doubts_of
from gatemesh_agent.rescue.hold import NOWHERE, Hold, Mark, State
from gatemesh_agent.rescue.kept import Kept, Places, fits
from gatemesh_agent.rescue.splicing import Splice, fields_of
from gatemesh_agent.rescue.story import Cause, Fault, Shown, Story
from gatemesh_agent.sse import DONE
from gatemesh_agent.stream import GuardedStream
from gatemesh_common.messages import CheckLevel, Outcome, Reason

SERVER_ERROR = 500
ERROR_MARK = b'"error"'
ERROR_REACH = 64
QUIET_FIELDS = ("tools", "stop", "functions", "ignore_eos")
"""Fields with which events without text are to be expected."""


ENDS = frozenset({Reason.EMPTY, Reason.TRUNCATED})
"""What is at fault with the end of an answer alone: all that was said before it stands."""


def is_torn_end(failure: Judgement | None) -> bool:
    """Return True for evidence that an answer ended too early; it is never proof."""
    return failure is not None and failure.reason in ENDS and not failure.hard


SILENT_EVENTS = 16
"""In a row, without anything to be seen: a character takes four tokens at most."""
SILENT = Judgement(
    CheckLevel.L1,
    Outcome.FAILED,
    Reason.TOKENS_WITHOUT_TEXT,
    score=float(SILENT_EVENTS),
    threshold=float(SILENT_EVENTS),
    gate_version=GATE_VERSION,
)


class Decide(Protocol):
    """Decides what becomes of an answer that a gate failed."""

    def __call__(self, failure: Judgement) -> Fault | None:
        """Return the fault for which it ends here; None lets it pass."""


class Leg:
    """Follows one instance's part; as a listener it hears what the judge reads."""

    def __init__(
        self,
        story: Story,
        judge: AnswerJudge,
        guarded: GuardedStream,
        hold: Hold,
        *,
        instance_id: str,
        acts: Callable[[Judgement], bool],
        decide: Decide,
        splice: Splice | None = None,
    ) -> None:
        self._story = story
        self._judge = judge
        self._guarded = guarded
        self._hold = hold
        self._instance_id = instance_id
        self._acts = acts
        """Tells whether a stream ends at a failure."""
        self._decide = decide
        self._splice = splice
        """Set where another instance began the stream."""
        self._doubts: dict[int, Doubts] = {}
        self._open: set[int] = set()
        self._places = Places()
        self._has_text = self._has_other = False
        """What the newest event says."""
        self._pending = Shown()
        """The kinds of output so far, held ones too."""
        self._is_plain = False
        """True while words follow words, as nearly always."""
        self._is_told = True
        """False while there is a kind of output that was not shown yet."""
        self._texts = self._known = self._unread = self._silent = 0
        self._heard = False
        """True where the newest event is about a choice."""
        self._body = body = story.case.request.asked.body or {}
        self._counts_quiet = any(body.get(name) for name in QUIET_FIELDS)
        self._announces = story.route in (Route.RESPONSES, Route.MESSAGES)
        self._by_id = True
        self.free = False
        """True once nothing is held any more, and only proof ends it."""
        self.fault: Fault | None = None
        """Why it ends here: nothing more of it goes to the client."""
        self.cut, self.end_kept = NOWHERE, b""
        """What was kept back where an end looks torn: its client gets it if nobody goes on."""
        self.ended = self.done = False
        """True once the engine said how its answer ended, and closed its stream in order."""
        self.moved = 0
        """Grows with each event that brings the answer on."""
        self.leaked = 0
        """Bad tokens that the client has got."""

    @property
    def tokens(self) -> int:
        """Tokens so far."""
        return self._places.last.tokens

    @property
    def is_measured(self) -> bool:
        """True where log probabilities came with the text."""
        return self._places.last.steps > 0

    @property
    def unread(self) -> int:
        """Grows with each piece that passes unjudged."""
        return self._unread

    @property
    def is_holding(self) -> bool:
        """True while something is held."""
        return self._hold.state is State.HOLDING

    def wait_s(self, now_s: float) -> float | None:
        """Return after how long held events are due though nothing comes."""
        return self._hold.wait_s(now_s)

    def follower(self, choice: int) -> Follower:
        """Return what is shown each step of a choice."""
        self._open.add(choice)
        doubts = self._doubts[choice] = doubts_of(self._body)
        return doubts.follow

    def hear(self, part: Part, suspicion: float) -> None:
        """Take in what an event says of a choice, once it is judged."""
        reading = part.reading
        self._heard = True
        self._doubts[part.choice].take(reading, suspicion)
        if reading.text:
            self._texts += 1
            self._has_text = True
            if not reading.steps:
                self._by_id = False
        if reading.calls or reading.other_output or (reading.text and not self._is_plain):
            self._note_kinds(reading)
        if part.finish_reason is not None:
            self._open.discard(part.choice)
            self.ended = not self._open and len(self._doubts) >= self._story.choices

    def feed(self, data: bytes, now_s: float) -> bytes:
        """Return what the client gets for these bytes; look at `fault` behind it."""
        out: list[bytes] = []
        pieces = self._guarded.pieces(data)
        for piece in pieces:
            self._unread += self._judge.given_up
            out.append(self._event(piece, now_s))
            if self.fault is not None:
                if self.end_kept:
                    self.end_kept += b"".join(map(self._continued, pieces))
                break
        return b"".join(out)

    def feed_end(self, data: bytes) -> None:
        """Keep what follows an end that was kept back."""
        self.end_kept += b"".join(map(self._continued, self._guarded.pieces(data)))

    def idle(self, now_s: float) -> bytes:
        """Return what was held for as long as may be."""
        return self._passed(self._hold.expire(now_s))

    def end(self, now_s: float) -> bytes:
        """Return what is left when the engine's stream ends; a fault if that was too early."""
        was_read = not self._judge.given_up
        rest = self._guarded.end()
        if not self.ended and was_read and self._story.route in (Route.CHAT, Route.COMPLETIONS):
            # An engine says how its answer ended before it ends the stream.
            self.leave(Fault(Cause.BROKEN, self._instance_id), now_s)
            return b""
        out = self._event(rest, now_s) if rest else b""
        return out if self.fault is not None else out + self._passed(self._hold.end(now_s))

    def close(self, now_s: float) -> bytes:
        """Return what is held of an answer that has ended, though its stream broke."""
        return self._passed(self._hold.end(now_s))

    def leave(self, fault: Fault, now_s: float) -> None:
        """End it here, at the last clean place."""
        self.fault = fault
        self.cut = self._hold.trip(now_s, self._places.clean)

    def kept(self) -> Kept:
        """Return the answer so far, with what is good of this part."""
        again = 0 if self._splice is None else self._splice.swallow.taken
        kept = self._story.kept.then(self._judge.first, self.cut, by_id=self._by_id, again=again)
        return replace(kept, leaked=kept.leaked + self.leaked)

    @property
    def is_whole(self) -> bool:
        """True while all that was said is there to go on from."""
        return fits(self._judge.first) and not self._judge.given_up

    def _event(self, piece: bytes, now_s: float) -> bytes:
        before, had = self._places.clean, self._places.last.tokens
        self._note()
        if ERROR_MARK in piece[:ERROR_REACH] and self._is_error(piece, now_s):
            return b""
        if self._is_proven(before, now_s, piece):
            return b""
        piece = self._shaped(piece)
        if self.ended and DONE in piece:
            self.done = True
        doubted = not self.free and (self._is_doubted or self._is_announcing)
        if not doubted and self._hold.state is State.PASSING:
            return piece if self._is_told else self._passed(piece)
        tokens = self._places.last.tokens - had
        out = self._hold.take(piece, before, tokens, now_s, doubted=doubted)
        return self._passed(out)

    def _note_kinds(self, reading: Reading) -> None:
        """Take in which kinds of output there are, once they change."""
        pending = self._pending
        pending.content = True
        if reading.calls or reading.other_output:
            self._has_other = True
            pending.calls |= bool(reading.calls)
            pending.reasoned |= reading.other_output
            pending.reasoning = reading.other_output
        if reading.text:
            pending.reasoning = False
        self._is_plain = not pending.reasoning
        self._is_told = False

    def _note(self) -> None:
        """Take in how far the answer is behind an event."""
        first = self._judge.first
        steps = first.steps
        self._places.add(Mark(first.chars, steps, steps or self._texts), said=self._has_text)
        if self._has_text or self._has_other or self.ended or self._counts_quiet:
            self.moved += 1
            self._silent = 0
        elif self._heard:
            self._silent += 1
            if self._silent == SILENT_EVENTS and not self._announces:
                self._judge.object(SILENT)
        self._heard = self._has_text = self._has_other = False

    def _passed(self, out: bytes) -> bytes:
        """Note that what was held, or the newest event, goes to the client."""
        if out and not self._is_told and not self.is_holding:
            self._is_told = True
            self._story.shown.take(self._pending)
        return out

    def _shaped(self, piece: bytes) -> bytes:
        if self._splice is None:
            self._story.head.see(piece)
        return self._continued(piece)

    def _continued(self, piece: bytes) -> bytes:
        return piece if self._splice is None else self._splice.event(piece)

    @property
    def _is_doubted(self) -> bool:
        if self.ended or self._judge.given_up:
            # All gates have concluded.
            return False
        for doubts in self._doubts.values():  # noqa: SIM110 (a third of the time of any)
            if doubts.is_open:
                return True
        return False

    @property
    def _is_announcing(self) -> bool:
        """Return True for what these routes say before there is an answer."""
        return self._announces and not self._pending.content and not self.ended

    def _is_error(self, piece: bytes, now_s: float) -> bool:
        """Leave at an error of the engine's own; those that are the client's pass."""
        fields = fields_of(piece) or {}
        error = fields.get("error")
        if not isinstance(error, dict) or self.ended:
            return False
        code = status_of(error)
        if code < SERVER_ERROR and not may_pass(code):
            # Nothing follows it that somebody else could go on from.
            self.ended = True
            return False
        died = ENGINE_DIED.decode() in str(error.get("message"))
        self.leave(Fault(Cause.DIED if died else Cause.ERROR, self._instance_id), now_s)
        return True

    def _is_proven(self, before: Mark, now_s: float, piece: bytes) -> bool:
        """Leave where a gate has failed the answer with its newest event."""
        failures = self._judge.failures
        if len(failures) == self._known:
            return False
        new = failures[self._known :]
        acting = [each for each in new if each.hard or (self._acts(each) and not self.free)]
        self._known = len(failures)
        failure = next((each for each in acting if each.hard), acting[0] if acting else None)
        if failure is None or (self.ended and not self._is_in_time(failure)):
            return False
        fault = self._decide(failure)
        if fault is None:
            self.free = True
            return False
        self.fault = fault
        if self.ended and is_torn_end(failure):
            self.end_kept = self._hold.held + self._continued(piece)
        self.cut = self._hold.trip(now_s, before)
        self._go_back(failure)
        return True

    def _is_in_time(self, failure: Judgement) -> bool:
        """Return True where what was found at the end of an answer is not with the client yet."""
        return self.is_holding or failure.reason in ENDS or not self._story.shown.content

    def _go_back(self, failure: Judgement) -> None:
        """Cut where the fault begins, though the client has got more than that.

        What is only evidence about a whole window does not say where that would be.
        """
        span = failure.span
        if (
            span is None
            or failure.reason in ENDS
            or not (failure.hard or failure.gate is CheckLevel.L1)
        ):
            return
        char = span.char_start
        if char is not None:
            # The gates read the answer from its beginning on, whoever wrote it.
            char = max(0, char - len(self._story.kept.text))
        place = self._places.before(step=span.token_start, char=char)
        if place.tokens < self.cut.tokens:
            self.leaked = self.cut.tokens - place.tokens
            self.cut = place
