"""Measure the agent's text and distribution gates on labelled cases and on recorded answers.

    python benchmarks/gates.py --cases FILE... [--corpus DIR] [--json OUT] [--cost]

Cases are JSON Lines with `request`, `response`, `expect` and `gate`; a corpus is a folder of
gzipped JSON Lines with raw responses. The gates are those that the agent runs, fed in small random
pieces.
"""

import argparse
import gzip
import json
import random
import re
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatemesh_agent.gates.chain import GateChain
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.refusal import is_nan_refusal
from gatemesh_agent.gates.steps import TokenStep, steps_of_chat, steps_of_completion

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.baseline_rules import BASELINES

from gatemesh_common.messages import CheckLevel, Outcome

FAIL = "fail"
HEALTHY = "clean"
LARGEST_PIECE = 9
COST_MARKS = (100, 1_000, 10_000, 30_000)


class InputError(Exception):
    """A file that cannot be measured; the text says which and what to do."""


@dataclass(frozen=True, slots=True)
class Result:
    """What the gates said about one answer."""

    failures: tuple[Judgement, ...]
    seconds: float = 0.0
    fired_at: int | None = None
    """Characters fed when the first failure was reported; None when only the end showed it."""

    def fails(self, up_to: str) -> bool:
        """Return True when a gate no dearer than this one failed."""
        return any(failure.gate <= up_to for failure in self.failures)

    def fails_at(self, gate: CheckLevel) -> bool:
        """Return True when this very gate failed."""
        return any(failure.gate is gate for failure in self.failures)


@dataclass(slots=True)
class Case:
    """One labelled answer and what came of it."""

    fields: Mapping[str, Any]
    result: Result

    @property
    def bad(self) -> bool:
        """True when the answer is labelled broken."""
        return bool(self.fields["expect"] == FAIL)

    @property
    def caught(self) -> bool:
        """True when its own gate, or a cheaper one, failed."""
        return self.result.fails(self.fields["gate"]) if self.bad else bool(self.result.failures)

    @property
    def text(self) -> str:
        """The answer."""
        return self.fields["response"].get("text") or ""

    @property
    def reason(self) -> str | None:
        """Why the engine stopped."""
        reason = self.fields["response"].get("finish_reason")
        return None if reason is None else str(reason)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON Lines file, gzipped or not."""
    for number, line in enumerate(text_lines(path), 1):
        if line.strip():
            yield parse_line(path, number, line)


def text_lines(path: Path) -> list[str]:
    """Return the lines of a file."""
    if not path.is_file():
        raise InputError(f"{path} is not there; give the path of a JSON Lines file")
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", newline="\n") as lines:
            return list(lines)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}); is it complete?") from error


def parse_line(path: Path, number: int, line: str) -> dict[str, Any]:
    """Parse one line; the error names file and line."""
    try:
        value = json.loads(line)
    except ValueError as error:
        raise InputError(f"{path}, line {number}: not JSON ({error}); repair or drop it") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}, line {number}: not a JSON object; each line must be one")
    return value


def need(path: Path, number: int, value: Mapping[str, Any], *names: str) -> None:
    """Raise when a field is missing."""
    for name in names:
        if name not in value:
            raise InputError(f"{path}, line {number}: no field {name!r}; each line needs {names}")


def judge_case(fields: Mapping[str, Any], rng: random.Random) -> Case:
    """Feed one case to the gates in random pieces, its steps along with its text."""
    response = fields["response"]
    text = response.get("text") or ""
    steps = [case_step(entry) for entry in response.get("logprobs") or ()]
    began = time.perf_counter()
    chain = GateChain(context_of(fields["request"]))
    fired_at = None
    fed = taken = 0
    for piece in pieces_of(text, rng):
        found = chain.feed_text(piece)
        fed += len(piece)
        ready = 0
        while taken + ready < len(steps) and length_of(steps[: taken + ready + 1]) <= fed:
            ready += 1
        found += chain.feed_steps(steps[taken : taken + ready])
        taken += ready
        if found and fired_at is None:
            fired_at = fed
    chain.feed_steps(steps[taken:])
    judgements = chain.finish(response.get("finish_reason"), response.get("tool_calls") or ())
    seconds = time.perf_counter() - began
    return Case(fields, Result(failures_of(judgements), seconds, fired_at))


def case_step(entry: Mapping[str, Any]) -> TokenStep:
    """Read one step of a case."""
    top = tuple(candidate[1] for candidate in entry.get("top") or ())
    return TokenStep(entry.get("token", ""), entry.get("logprob"), top)


def length_of(steps: Sequence[TokenStep]) -> int:
    """Return the characters of some steps."""
    return sum(len(step.text) for step in steps)


def pieces_of(text: str, rng: random.Random) -> Iterator[str]:
    """Cut a text anywhere, also inside a character of several code points."""
    at = 0
    while at < len(text):
        size = rng.randint(1, LARGEST_PIECE)
        yield text[at : at + size]
        at += size


def failures_of(judgements: Iterable[Judgement]) -> tuple[Judgement, ...]:
    """Return the failures among some judgements."""
    return tuple(item for item in judgements if item.outcome is Outcome.FAILED)


def judge_answer(line: Mapping[str, Any], vocab_size: int | None) -> tuple[set[str], bool]:
    """Return which gates fail a recorded answer, and whether one of them proves it."""
    body = line["body"] or ""
    if line["status"] != 200:
        refused = is_nan_refusal(line["status"], body.encode())
        return ({CheckLevel.L3.value} if refused else set()), refused
    failures = [
        failure
        for choice in choices_of(body, streamed=bool(line.get("stream")))
        for failure in judge_choice(line["request"], choice, vocab_size)
    ]
    return {failure.gate.value for failure in failures}, any(item.hard for item in failures)


def choices_of(body: str, *, streamed: bool) -> Iterator[list[Mapping[str, Any]]]:
    """Yield, for each choice of a response, the events that carry it."""
    texts = re.findall(r"^data: (\{.*)$", body, re.MULTILINE) if streamed else [body]
    by_index: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for text in texts:
        for choice in json.loads(text).get("choices", ()):
            by_index[choice.get("index", 0)].append(choice)
    yield from by_index.values()


def judge_choice(
    request: Mapping[str, Any], events: Sequence[Mapping[str, Any]], vocab_size: int | None
) -> tuple[Judgement, ...]:
    """Feed the events of one choice to the gates."""
    chain = GateChain(context_of(request), vocab_size)
    reason: str | None = None
    calls: list[Mapping[str, Any]] = []
    for event in events:
        part = event.get("delta") or event.get("message") or {}
        chain.feed_text(part.get("content") or event.get("text") or "")
        figures = event.get("logprobs")
        chat = "messages" in request
        chain.feed_steps(steps_of_chat(figures) if chat else steps_of_completion(figures))
        calls += part.get("tool_calls") or ()
        reason = event.get("finish_reason") or reason
    return failures_of(chain.finish(reason, calls))


@dataclass(frozen=True, slots=True)
class Score:
    """Precision, recall, F1 and the share of good answers that fail."""

    precision: float
    recall: float
    f1: float
    false_alarms: float

    def fields(self) -> dict[str, float]:
        """Return it as JSON fields."""
        return {
            "precision": round(self.precision, 4),
            "recall": round(self.recall, 4),
            "f1": round(self.f1, 4),
            "false_alarms": round(self.false_alarms, 4),
        }


def score(verdicts: Iterable[tuple[bool, bool]]) -> Score:
    """Score pairs of (labelled bad, said bad)."""
    counts = Counter(verdicts)
    hits, misses = counts[True, True], counts[True, False]
    alarms, good = counts[False, True], counts[False, True] + counts[False, False]
    precision = share(hits, hits + alarms)
    recall = share(hits, hits + misses)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return Score(precision, recall, f1, share(alarms, good))


def share(part: float, whole: float) -> float:
    """Return a share; none of nothing."""
    return part / whole if whole else 0.0


def in_l1_scope(case: Case) -> bool:
    """Return True for the cases by which L1 is scored."""
    return not case.bad or case.fields["gate"] == CheckLevel.L1


def lacks_input(case: Case) -> bool:
    """Return True where L3 abstains: it had no log probabilities."""
    return case.fields["gate"] == CheckLevel.L3 and not case.fields["response"].get("logprobs")


def score_cases(cases: Sequence[Case]) -> dict[str, Any]:
    """Return all figures of some cases."""
    scope = [case for case in cases if in_l1_scope(case)]
    chain = score((case.bad, case.caught) for case in cases).fields()
    return {
        "l1": score((case.bad, case.result.fails_at(CheckLevel.L1)) for case in scope).fields(),
        "chain": {name: chain[name] for name in ("recall", "false_alarms")},
        "gates": per_gate(cases),
        "by_kind": by_kind(cases),
        "baselines": {
            name: score((case.bad, rule(case.text, case.reason)) for case in scope).fields()
            for name, rule in BASELINES.items()
        },
        "onset_chars": latencies(cases),
        "ms_per_case": times(cases),
    }


def per_gate(cases: Sequence[Case]) -> dict[str, dict[str, float | int]]:
    """Return recall and false alarms of each gate; a gate without input abstains."""
    good = [case for case in cases if not case.bad]
    found: dict[str, dict[str, float | int]] = {}
    for level in CheckLevel:
        own = [case for case in cases if case.bad and case.fields["gate"] == level]
        judged = [case for case in own if not lacks_input(case)]
        alarms = sum(case.result.fails_at(level) for case in good)
        found[level.value] = {
            "cases": len(own),
            "recall": round(share(sum(case.caught for case in judged), len(judged)), 4),
            "false_alarms": round(share(alarms, len(good)), 4),
        }
    return found


def by_kind(cases: Sequence[Case]) -> dict[str, dict[str, Any]]:
    """Return how many of each kind failed, and which did not do as labelled."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        groups[str(case.fields.get("kind", "unnamed"))].append(case)
    return {kind: one_kind(group) for kind, group in sorted(groups.items())}


def one_kind(group: Sequence[Case]) -> dict[str, Any]:
    """Return the figures of one kind, whose cases are all broken or all fine as a rule."""
    found: dict[str, Any] = {"cases": len(group)}
    for name, bad in (("caught_share", True), ("false_alarm_share", False)):
        part = [case.caught for case in group if case.bad is bad]
        if part:
            found[name] = round(share(sum(part), len(part)), 4)
    found["wrong"] = [str(case.fields.get("id")) for case in group if case.caught != case.bad]
    return found


def latencies(cases: Sequence[Case]) -> dict[str, float | int]:
    """Return how many characters after the onset a gate fired."""
    known = [case for case in cases if case.bad and case.fields.get("onset") is not None]
    late = [
        case.result.fired_at - case.fields["onset"]
        for case in known
        if case.result.fired_at is not None and case.caught
    ]
    if not late:
        return {"cases": len(known), "fired": 0}
    return {
        "cases": len(known),
        "fired": len(late),
        "median": statistics.median(late),
        "max": max(late),
    }


def times(cases: Sequence[Case]) -> dict[str, float]:
    """Return the time per case in milliseconds."""
    spent = sorted(case.result.seconds * 1e3 for case in cases)
    if not spent:
        return {}
    return {"median": round(statistics.median(spent), 3), "max": round(spent[-1], 3)}


def measure_corpus(folder: Path, vocab_size: int | None) -> dict[str, dict[str, Any]]:
    """Judge every recorded answer of a folder, by variant."""
    paths = sorted(folder.glob("*.jsonl.gz")) + sorted(folder.glob("*.jsonl"))
    if not paths:
        raise InputError(f"{folder} holds no *.jsonl.gz; give the folder of the recorded answers")
    return {path.name.split(".jsonl")[0]: measure_variant(path, vocab_size) for path in paths}


def measure_variant(path: Path, vocab_size: int | None) -> dict[str, Any]:
    """Judge the answers of one file."""
    counts: Counter[str] = Counter()
    total = hard = caught = 0
    healthy = path.name.split(".")[0] == HEALTHY
    for number, line in enumerate(read_lines(path), 1):
        need(path, number, line, "request", "status", "body")
        try:
            gates, proven = judge_answer(line, vocab_size)
        except (ValueError, AttributeError, TypeError) as error:
            raise InputError(f"{path}, line {number}: odd response ({error})") from error
        total += 1
        caught += bool(gates)
        hard += proven
        counts.update(gates)
    rate = round(share(caught, total), 4)
    return {
        "answers": total,
        "caught_share": 0.0 if healthy else rate,
        "false_alarm_share": rate if healthy else 0.0,
        "hard_share": round(share(hard, total), 4),
        "by_gate": {gate: round(share(count, total), 4) for gate, count in sorted(counts.items())},
    }


def measure_cost(rng: random.Random) -> dict[str, float]:
    """Return microseconds per token of L1 and L3 with 20 log probabilities, token by token."""
    steps = [synthetic_step(rng) for _ in range(COST_MARKS[-1])]
    chain = GateChain(context_of({"messages": [{"role": "user", "content": "Tell me a story."}]}))
    found: dict[str, float] = {}
    done = 0
    for mark in COST_MARKS:
        began = time.perf_counter()
        for step in steps[done:mark]:
            chain.feed_text(step.text)
            chain.feed_steps((step,))
        spent = time.perf_counter() - began
        found[f"{done + 1}-{mark}"] = round(spent / (mark - done) * 1e6, 2)
        done = mark
    failures = failures_of(chain.finish(None))
    if failures:
        raise InputError(
            f"the synthetic text failed ({failures[0].reason}); the cost means nothing"
        )
    return found


def synthetic_step(rng: random.Random) -> TokenStep:
    """Return one step of about four characters with 20 candidates."""
    letters = "".join(rng.choices("etaoinshrdlucmfwypvbgk", k=rng.randint(1, 6)))
    text = rng.choice(("", " ", " ", " ")) + letters + rng.choice(("", "", "", "", "", ".", ","))
    first = -rng.random() * 0.5
    return TokenStep(text, first, (first, *(-2.0 - rank / 2 for rank in range(19))))


def print_cases(fields: Mapping[str, Any]) -> None:
    """Print the tables of the cases."""
    print(f"{'rule':50} precision recall    F1  false alarms")
    rows = {"L1 of the agent": fields["l1"], **fields["baselines"]}
    for name, row in rows.items():
        print(
            f"{name:50} {row['precision']:9.3f} {row['recall']:6.3f} {row['f1']:5.3f}"
            f" {row['false_alarms']:12.1%}"
        )
    print("\ngate   cases  recall  false alarms")
    for gate, row in fields["gates"].items():
        print(f"{gate:6} {row['cases']:5} {row['recall']:7.3f} {row['false_alarms']:12.1%}")
    chain = fields["chain"]
    print(f"chain        {chain['recall']:7.3f} {chain['false_alarms']:12.1%}")
    for kind, row in fields["by_kind"].items():
        if row["wrong"]:
            print(f"not as labelled: {kind}: {', '.join(row['wrong'])}")
    print(f"characters from onset to failure: {fields['onset_chars']}")
    print(f"milliseconds per case: {fields['ms_per_case']}\n")


def print_corpus(corpus: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the table of the recorded answers."""
    print("variant                  answers  caught  false alarms   hard  by gate")
    for variant, row in corpus.items():
        gates = " ".join(f"{gate} {rate:.3f}" for gate, rate in row["by_gate"].items())
        print(
            f"{variant:24} {row['answers']:7} {row['caught_share']:7.3f}"
            f" {row['false_alarm_share']:13.3f} {row['hard_share']:6.3f}  {gates}"
        )


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure the agent's gates.")
    parser.add_argument("--cases", nargs="+", type=Path, default=[], metavar="FILE")
    parser.add_argument("--corpus", type=Path, metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures as JSON")
    parser.add_argument("--cost", action="store_true", help="measure the time per token")
    parser.add_argument("--vocab-size", type=int, help="of the corpus' model, if known")
    parser.add_argument("--seed", type=int, default=1, help="of the random pieces")
    parsed = parser.parse_args(argv)
    if not (parsed.cases or parsed.corpus or parsed.cost):
        parser.error("nothing to measure: give --cases FILE, --corpus DIR or --cost")
    return parsed


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure and print what was asked for."""
    fields: dict[str, Any] = {}
    rng = random.Random(options.seed)
    if options.cases:
        fields |= score_cases([case for path in options.cases for case in judge_file(path, rng)])
        print_cases(fields)
    if options.corpus:
        fields["corpus"] = measure_corpus(options.corpus, options.vocab_size)
        print_corpus(fields["corpus"])
    if options.cost:
        fields["us_per_token"] = measure_cost(rng)
        print(f"microseconds per token, L1 + L3: {fields['us_per_token']}")
    return fields


def judge_file(path: Path, rng: random.Random) -> Iterator[Case]:
    """Judge every case of a file."""
    for number, fields in enumerate(read_lines(path), 1):
        need(path, number, fields, "request", "response", "expect", "gate")
        try:
            yield judge_case(fields, rng)
        except (AttributeError, TypeError, KeyError, IndexError) as error:
            raise InputError(f"{path}, line {number}: odd case ({error!r})") from error


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; 2 means that an input cannot be measured."""
    options = arguments(argv)
    try:
        fields = measure(options)
        if options.json:
            options.json.write_text(json.dumps(fields, indent=1) + "\n", encoding="utf-8")
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: cannot write {options.json}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
