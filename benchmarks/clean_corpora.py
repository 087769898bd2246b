"""Count the false alarms of the text gate on healthy texts made on the spot; list each one.

    python benchmarks/clean_corpora.py [--answers N] [--passages N] [--sources N] [--json OUT]
        [--engine URL] [--answers-file FILE] [--cache DIR] [--seed N]

Passages are documentation in many languages, sources are files of the standard library and of npm
packages, answers are those of a running healthy engine (recorded first, with `--engine`). Packages
are fetched once into the cache folder. The gate is the one that the agent runs, fed in small
random pieces.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.clean_answers import record
from benchmarks.clean_sources import CleanText, documentation, sources
from benchmarks.gate_inputs import pieces_of, read_lines

from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.l1_text import TextGate
from gatemesh_agent.saved import OK, read_recorded
from gatemesh_common.gates import Ending
from gatemesh_common.messages import Outcome

LARGEST_PIECE = 24
SHOWN_CHARS = 160
TEMPERATURE = 0.7


def request_of(text: CleanText) -> dict[str, Any]:
    """Return the chat request to which a text is the answer."""
    messages = [{"role": "user", "content": text.prompt}]
    return {"messages": messages, "temperature": TEMPERATURE}


def judge(
    request: Mapping[str, Any], text: str, finish_reason: str | None, rng: random.Random
) -> Judgement:
    """Feed a text to the gate in random pieces."""
    gate = TextGate(context_of(request))
    for piece in pieces_of(text, rng, LARGEST_PIECE):
        if gate.feed_text(piece):
            break
    return gate.finish(Ending(finish_reason))


def measure(texts: Sequence[CleanText], rng: random.Random) -> dict[str, Any]:
    """Judge some texts and return the figures with every alarm."""
    judged = ((text, judge(request_of(text), text.text, text.finish_reason, rng)) for text in texts)
    alarms = [
        alarm_of(text.group, text.name, text.prompt, text.text, judgement)
        for text, judgement in judged
        if judgement.outcome is Outcome.FAILED
    ]
    return figures(alarms, Counter(text.group for text in texts))


def figures(alarms: list[dict[str, Any]], groups: Counter[str]) -> dict[str, Any]:
    """Return counts and shares."""
    total = sum(groups.values())
    return {
        "texts": total,
        "groups": dict(sorted(groups.items())),
        "alarms": len(alarms),
        "alarm_share": round(len(alarms) / total, 6) if total else 0.0,
        "by_reason": dict(Counter(alarm["reason"] for alarm in alarms)),
        "list": alarms,
    }


def alarm_of(group: str, name: str, prompt: str, text: str, judgement: Judgement) -> dict[str, Any]:
    """Describe one false alarm so that a reader can judge it."""
    span = judgement.span
    start = span.char_start or 0 if span is not None else 0
    return {
        "reason": judgement.reason.value,
        "group": group,
        "name": name,
        "prompt": prompt,
        "score": judgement.score,
        "threshold": judgement.threshold,
        "at": start,
        "text": text[max(start - 20, 0) : start + SHOWN_CHARS],
    }


def measure_answers(path: Path, count: int, rng: random.Random) -> dict[str, Any]:
    """Judge recorded answers of a healthy engine."""
    alarms: list[dict[str, Any]] = []
    modes: Counter[str] = Counter()
    for line in list(recorded(path))[:count]:
        modes[line["mode"]] += 1
        for choice in read_recorded(line, path.name).choices:
            judgement = judge(line["request"], choice.text, choice.finish_reason, rng)
            if judgement.outcome is Outcome.FAILED:
                prompt = line["request"]["messages"][-1]["content"]
                name = line["prompt_id"]
                alarms.append(alarm_of(line["mode"], name, prompt, choice.text, judgement))
    return figures(alarms, modes)


def recorded(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the answered lines of a recording."""
    return (answer for answer in read_lines(path) if answer["status"] == OK)


def show(name: str, found: Mapping[str, Any], spent_s: float) -> None:
    """Print the figures of one corpus and each alarm."""
    print(
        f"{name}: {found['texts']} texts in {len(found['groups'])} groups, {found['alarms']} alarms"
        f" ({found['alarm_share']:.4%}) {found['by_reason']}, {spent_s:.0f} s"
    )
    for alarm in found["list"]:
        print(f"  {alarm['reason']:18} {alarm['group']:7} {alarm['name']} at {alarm['at']}")
        print(f"    {alarm['prompt'][:80]!r}: {alarm['text']!r}")


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Count the text gate's false alarms.")
    parser.add_argument("--answers", type=int, default=0, metavar="N")
    parser.add_argument("--passages", type=int, default=0, metavar="N")
    parser.add_argument("--sources", type=int, default=0, metavar="N")
    parser.add_argument("--engine", metavar="URL", help="a healthy engine to record answers of")
    parser.add_argument("--answers-file", type=Path, metavar="FILE", help="where answers lie")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="where packages are kept")
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--seed", type=int, default=1)
    parsed = parser.parse_args(argv)
    if not (parsed.answers or parsed.passages or parsed.sources):
        parser.error("nothing to measure: give --answers N, --passages N or --sources N")
    if parsed.answers and not (parsed.engine or parsed.answers_file):
        parser.error("--answers needs --engine URL, or --answers-file FILE of an earlier run")
    return parsed


def corpora(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure each corpus that was asked for."""
    rng = random.Random(options.seed)
    if options.passages:
        yield "passages", measure(documentation(folder, options.passages, seed=options.seed), rng)
    if options.sources:
        yield "sources", measure(sources(folder, options.sources, seed=options.seed), rng)
    if options.answers:
        path = options.answers_file or folder / "answers.jsonl.gz"
        if options.engine:
            record(options.engine, options.answers, path, seed=options.seed)
        yield "answers", measure_answers(path, options.answers, rng)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 means that a corpus could not be made as large as asked."""
    options = arguments(argv)
    found: dict[str, Any] = {}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as fresh:
        folder = (options.cache or Path(fresh)).resolve()
        for name, row in corpora(options, folder):
            show(name, row, time.monotonic() - began)
            found[name] = row
            began = time.monotonic()
    if options.json:
        text = json.dumps(found, ensure_ascii=False, indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")
    short = [name for name, row in found.items() if row["texts"] < getattr(options, name)]
    if short:
        print(f"smaller than asked: {', '.join(short)}; is a package index reachable?")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
