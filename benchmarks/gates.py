"""Measure the gates on labelled cases and on recorded answers.

    python benchmarks/gates.py --cases FILE... [--corpus DIR] [--json OUT] [--cost]

Cases are JSON Lines with `request`, `response`, `expect` and `gate`, and what dearer gates need:
`baseline` (L2), `shadow_text` (L4), `probe` (L5). A corpus is a folder of gzipped JSON Lines with
raw responses. The gates are those that run in the services, fed in small random pieces.
"""

import argparse
import json
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.cosines import cosines_of
from benchmarks.gate_cases import judge_file, score_cases
from benchmarks.gate_corpus import measure_corpus
from benchmarks.gate_cost import measure_cost
from benchmarks.gate_inputs import InputError


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
    print("variant             answers caught alone alarms  hard +shadow first acted  by gate")
    for variant, row in corpus.items():
        gates = " ".join(f"{gate} {rate:.3f}" for gate, rate in row["by_gate"].items())
        first, acted = row["first_failure_after"] or "-", row["acted_after"] or "-"
        print(
            f"{variant:20}{row['answers']:7}{row['caught_share']:7.3f}{row['alone_share']:6.3f}"
            f"{row['false_alarm_share']:7.3f}{row['hard_share']:6.3f}"
            f"{row['with_shadow_share']:8.3f}{first:>6}{acted:>6}  {gates}"
        )


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure the agent's gates.")
    parser.add_argument("--cases", nargs="+", type=Path, default=[], metavar="FILE")
    parser.add_argument("--corpus", type=Path, metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures as JSON")
    parser.add_argument("--cost", action="store_true", help="measure the time per token")
    parser.add_argument("--vocab-size", type=int, help="of the corpus' model, if known")
    parser.add_argument(
        "--models", type=Path, metavar="PYTHON", help="Python with sentence-transformers, for L4"
    )
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
        fields |= score_cases(
            [
                case
                for path in options.cases
                for case in judge_file(path, rng, cosines_of(path, options.models))
            ]
        )
        print_cases(fields)
    if options.corpus:
        fields["corpus"] = measure_corpus(options.corpus, options.vocab_size)
        print_corpus(fields["corpus"])
    if options.cost:
        fields["us_per_token"] = measure_cost(rng)
        print(f"microseconds per token, L1 to L3: {fields['us_per_token']}")
    return fields


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
