"""Cheap signs of a sick engine, seen over many answers of one life and beside its peers. Pure."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.reporting import Life
from gatemesh_agent.transcript import Transcript
from gatemesh_common.gates import CUT_BY_LIMIT
from gatemesh_common.messages import CheckLevel, Outcome, Reason

WINDOW_ANSWERS = 40
WINDOW_S = 300.0
MOST_LIVES = 1000
WORDLESS_TOKENS = 8
"""Tokens without a letter to show for them; a stop string at once costs fewer."""
EQUAL_TOKENS = 4
EQUAL_SPREAD = 1e-3
EQUAL_BELOW = -0.05
"""An engine that is sure of every token has equal figures near 0, and is well."""
LONG_TOKENS = 32
"""Answers that were cut before are short because the client wants them so."""
FEWEST = 3
"""Answers and prompts that make a sign, where each by itself is odd already."""
FEWEST_ENDLESS = 20
PEERS_FEWEST = 10
PEERS_FEWEST_ENDLESS = 20
PEERS_SHARE = 0.2
"""Of the peers' answers; if more have the sign it is the traffic's."""
ENDLESS_SHARE = 0.95
PEERS_ENDLESS_SHARE = 0.5
"""By chance 20 in a row of such answers come once in a million."""
REFUSALS = 5


@dataclass(frozen=True, slots=True)
class Note:
    """What is remembered of one answer."""

    at_s: float
    prompt: str
    wordless: bool = False
    equal: bool = False
    long: bool = False
    endless: bool = False
    refused: bool = False


def note_of(first: Transcript, prompt: str, now_s: float) -> Note:
    """Return what is remembered of an answer."""
    tokens = max(first.steps, first.events)
    figures = first.range_nats() if first.steps >= EQUAL_TOKENS else None
    equal = (
        figures is not None
        and figures[1] - figures[0] <= EQUAL_SPREAD
        and figures[1] <= EQUAL_BELOW
    )
    long = tokens >= LONG_TOKENS
    return Note(
        at_s=now_s,
        prompt=prompt,
        wordless=tokens >= WORDLESS_TOKENS and not first.chars and not first.other_output,
        equal=equal,
        long=long,
        endless=long and first.finish_reason == CUT_BY_LIMIT,
    )


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign: which notes show it, and how many of a life's must."""

    reason: Reason
    level: CheckLevel
    shows: Callable[[Note], bool]
    counts: Callable[[Note], bool]
    """Notes that could show it."""
    fewest: int = FEWEST
    fewest_prompts: int = FEWEST
    share: float = 0.0
    """Of a life's notes that must show it."""
    peers_fewest: int = 0
    """Notes of other lives that are needed to compare with."""
    peers_share: float = PEERS_SHARE


def any_answer(note: Note) -> bool:
    """Return True for an answer that was no refusal."""
    return not note.refused


SIGNS = (
    Sign(Reason.TOKENS_WITHOUT_TEXT, CheckLevel.L1, lambda note: note.wordless, any_answer),
    Sign(Reason.EQUAL_LOGPROBS, CheckLevel.L3, lambda note: note.equal, any_answer),
    Sign(
        reason=Reason.NEVER_ENDS,
        level=CheckLevel.L1,
        shows=lambda note: note.endless,
        counts=lambda note: note.long,
        fewest=FEWEST_ENDLESS,
        fewest_prompts=FEWEST,
        share=ENDLESS_SHARE,
        peers_fewest=PEERS_FEWEST_ENDLESS,
        peers_share=PEERS_ENDLESS_SHARE,
    ),
)
BURST = Sign(
    reason=Reason.BURST_OF_REFUSALS,
    level=CheckLevel.L1,
    shows=lambda note: note.refused,
    counts=lambda _: True,
    fewest=REFUSALS,
)


@dataclass(slots=True)
class History:
    """The last answers of one life."""

    notes: deque[Note] = field(default_factory=lambda: deque(maxlen=WINDOW_ANSWERS))

    def recent(self, now_s: float) -> list[Note]:
        """Return what is not too old."""
        return [note for note in self.notes if now_s - note.at_s <= WINDOW_S]


class Signs:
    """Remembers the last answers of each life and judges each new one beside them."""

    def __init__(self) -> None:
        self._lives: dict[Life, History] = {}

    def answered(self, life: Life, note: Note) -> list[Judgement]:
        """Take in an answer; return the signs that it completes."""
        self._add(life, note)
        return [found for sign in SIGNS if (found := self._judge(sign, life, note))]

    def refused(self, life: Life, prompt: str, now_s: float) -> Judgement | None:
        """Take in a refusal that names no parameter; return the sign that it completes."""
        note = Note(now_s, prompt, refused=True)
        self._add(life, note)
        return self._judge(BURST, life, note)

    def _add(self, life: Life, note: Note) -> None:
        history = self._lives.get(life)
        if history is None:
            if len(self._lives) >= MOST_LIVES:
                self._lives.pop(next(iter(self._lives)))
            history = self._lives[life] = History()
        history.notes.append(note)

    def _judge(self, sign: Sign, life: Life, note: Note) -> Judgement | None:
        if not sign.shows(note):
            return None
        own = [each for each in self._lives[life].recent(note.at_s) if sign.counts(each)]
        shown = [each for each in own if sign.shows(each)]
        share = len(shown) / len(own)
        prompts = len({each.prompt for each in shown})
        if len(shown) < sign.fewest or prompts < sign.fewest_prompts or share < sign.share:
            return None
        peers = [each for each in self._peers(life, note.at_s) if sign.counts(each)]
        peers_share = share_of(sign, peers)
        if len(peers) < sign.peers_fewest or peers_share > sign.peers_share:
            return None
        return Judgement(
            sign.level,
            Outcome.FAILED,
            sign.reason,
            score=round(share, 4),
            threshold=sign.share or None,
            details={
                "by": "signs",
                "answers": len(own),
                "showing": len(shown),
                "prompts": prompts,
                "peers": len(peers),
                "peers_share": round(peers_share, 4),
            },
        )

    def _peers(self, life: Life, now_s: float) -> Iterable[Note]:
        for other, history in self._lives.items():
            if other.instance_id != life.instance_id:
                yield from history.recent(now_s)


def share_of(sign: Sign, peers: list[Note]) -> float:
    """Return how many of the peers' notes show a sign; few are no baseline."""
    if len(peers) < max(sign.peers_fewest, PEERS_FEWEST):
        return 0.0
    return sum(map(sign.shows, peers)) / len(peers)
