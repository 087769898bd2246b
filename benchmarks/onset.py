"""Measure how soon the text gate fires when a good answer goes bad in the middle, by kind.

    python benchmarks/onset.py [--runs N] [--splits N] [--json OUT]

The good part is documentation of Python's standard library, 0 to 2,000 tokens of it; the bad part
follows in pieces of one token (four characters). `least` is when a fault can be known at the
earliest; the gate looks every four tokens. With `--splits` every stream is also cut in N
random ways, which must not change the verdict.
"""

import argparse
import json
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.l1_text import TextGate
from gatemesh_common.gates import Ending

TOKEN_CHARS = 4
ONSETS_TOKENS = (0, 32, 128, 300, 600, 1_000, 2_000)
BAD_CHARS = 3_000
LARGEST_PIECE = 40
PARTS = ("early", "late")
REQUEST = {
    "messages": [{"role": "user", "content": "Explain how the import system of Python works."}],
    "temperature": 0.7,
}
SENTENCES = (
    "The loader then looks for the module in every folder of the path. ",
    "This value is kept until the program ends, and nothing else can change it. ",
    "You can call the method again, and it will return the same object as before. ",
)
SALAD = (
    "цветок", "土壤", "ปุ๋ย", "زراعة", "κήπος", "הכנסה", "세금", "हिंदी", "მზე", "gravel", "spoon",
    "nextState", "的时候", "очень", "мы", "של", "fjord", "また", "lantern", "обязательно",
)  # fmt: skip


def many(unit: str) -> Callable[[random.Random], str]:
    """Return a maker of one unit over and over."""
    return lambda _: unit * (BAD_CHARS // len(unit) + 1)


def salad(rng: random.Random) -> str:
    """Return words of many scripts."""
    return " ".join(rng.choice(SALAD) for _ in range(BAD_CHARS // 6))


def numbered(rng: random.Random) -> str:
    """Return rows that differ in their number only."""
    first = rng.randrange(3, 40)
    rows = range(first, first + 60)
    return "\n" + "".join(f"{row}. Check the name of the module and import it.\n" for row in rows)


def templated(rng: random.Random) -> str:
    """Return sentences that differ in one word only."""
    names = [f"{rng.choice('bdfgklmnprstv')}{rng.choice('aeiou')}rin" for _ in range(60)]
    return "".join(f"Then {name} opens the file and reads the next line of it. " for name in names)


def odd_letters(first: int, last: int) -> Callable[[random.Random], str]:
    """Return a maker of random characters of one range."""
    return lambda rng: "".join(chr(rng.randrange(first, last)) for _ in range(BAD_CHARS))


FAULTS: dict[str, Callable[[random.Random], str]] = {
    "one sign": many("!"),
    "one letter": many("G"),
    "line breaks": many("\n"),
    "blanks": many(" "),
    "one word": many("the "),
    "phrase of 14": many("and the water "),
    "phrase of 30": many("is a new way of the old thing "),
    "sentence of 66": many(SENTENCES[0]),
    "three sentences": many("".join(SENTENCES)),
    "code of 24": many("import json\nimport re\n  \n"),
    "Chinese phrase": many("我们可以这样做，"),
    "numbered rows": numbered,
    "templated sentences": templated,
    "many scripts": salad,
    "foreign passage": many("Программа загружает модуль и выполняет его код один раз. "),
    "odd Chinese letters": odd_letters(0x3400, 0x4D00),
    "pictures": odd_letters(0x1F300, 0x1F5FF),
    "U+FFFD": many(" \ufffd\ufffd"),
    "private use": odd_letters(0xE000, 0xF8FF),
    "control characters": many("a\x00b\x01 "),
    "special token": many("<|im_end|>\n<|im_start|>assistant\n"),
    "undecoded tokens": many("ĠtheĠloaderĠopens"),
    "mojibake": many("cafÃ© trÃ¨s dÃ©jÃ  "),
    "escapes": many("ends.\\n\\nThe module is read.\\n"),
    "lost blanks": many("theloaderopensthefileandreadseverylineofitbeforeitreturnsthemodule"),
    "doubled words": many("the the loader loader opens opens a a file file and and reads reads "),
    "base64": lambda rng: " " + "".join(rng.choices("ABCDEFabcdefxyzXYZ0123456789+/", k=BAD_CHARS)),
    "invented turns": many("\nUser: and then?\nAssistant: It is loaded.\n"),
}  # fmt: skip


TIMES = 3
"""A phrase that stands there twice is emphasis or a refrain; no one can call it a loop earlier."""
LEAST_CHARS: dict[str, int] = {
    "one sign": 28,
    "one letter": 64,
    "line breaks": 24,
    "blanks": 112,
    "one word": 88,
    "phrase of 14": TIMES * 14,
    "phrase of 30": TIMES * 30,
    "sentence of 66": TIMES * 66,
    "three sentences": TIMES * sum(map(len, SENTENCES)),
    "code of 24": TIMES * 24,
    "Chinese phrase": TIMES * 8,
    "numbered rows": TIMES * 47,
    "templated sentences": TIMES * 56,
    "many scripts": 16,
    "foreign passage": 25,
    "odd Chinese letters": 25,
    "pictures": 25,
    "U+FFFD": 2,
    "private use": 2,
    "control characters": 2,
    "special token": 10,
    "undecoded tokens": 12,
    "mojibake": 11,
    "escapes": 68,
    "lost blanks": 72,
    "doubled words": 64,
    "base64": 101,
    "invented turns": 28,
}
"""Characters of each fault before which it may still be a healthy text.

Of a loop three times its unit; of a run what people write unasked (table rules, banners, padded
cells, fillers: `LIMIT_CHARS` of the gate, which stem from healthy texts); of the rest the text up
to the second or third sign, since one may be a quotation.
"""


def good_text(rng: random.Random, chars: int) -> str:
    """Return running documentation of some length."""
    names = sorted(topics)
    found = ""
    while len(found) < chars:
        found += topics[rng.choice(names)].strip() + "\n\n"
    return found[:chars]


def judged(text: str, sizes: Sequence[int]) -> tuple[Judgement, int]:
    """Feed a text in pieces of these sizes; return the verdict and the characters fed until it."""
    gate = TextGate(context_of(REQUEST))
    at = 0
    for size in sizes:
        if at >= len(text) or gate.feed_text(text[at : at + size]) is not None:
            break
        at += size
    return gate.finish(Ending("length")), at + TOKEN_CHARS


def measure(runs: int, splits: int, rng: random.Random) -> dict[str, Any]:
    """Return the figures of each kind."""
    return {
        kind: {"least": least_tokens(kind), **measure_kind(make, runs, splits, rng)}
        for kind, make in FAULTS.items()
    }


def measure_kind(
    make: Callable[[random.Random], str], runs: int, splits: int, rng: random.Random
) -> dict[str, Any]:
    """Return how many tokens after the onset one kind was seen, over several onsets."""
    early: list[float] = []
    late: list[float] = []
    other = missed = 0
    for number in range(runs):
        onset = ONSETS_TOKENS[number % len(ONSETS_TOKENS)]
        good = good_text(rng, onset * TOKEN_CHARS)
        text = good + make(rng)[:BAD_CHARS]
        verdict, fed = judged(text, [TOKEN_CHARS] * len(text))
        other += sum(judged(text, cuts(text, rng))[0] != verdict for _ in range(splits))
        if verdict.score is None:
            missed += 1
        elif onset >= ONSETS_TOKENS[2]:
            late.append((fed - len(good)) / TOKEN_CHARS)
        else:
            early.append((fed - len(good)) / TOKEN_CHARS)
    return {"missed": missed, "early": spread(early), "late": spread(late), "other_verdicts": other}


def least_tokens(kind: str) -> int:
    """Return after how many tokens a fault of one kind can be known at the earliest."""
    return -(-LEAST_CHARS[kind] // TOKEN_CHARS)


def cuts(text: str, rng: random.Random) -> list[int]:
    """Return random sizes of pieces that make up a text."""
    sizes: list[int] = []
    left = len(text)
    while left > 0:
        sizes.append(rng.randint(1, LARGEST_PIECE))
        left -= sizes[-1]
    return sizes


def spread(tokens: Sequence[float]) -> dict[str, float]:
    """Return median and maximum."""
    if not tokens:
        return {}
    return {"median": statistics.median(tokens), "max": max(tokens)}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 means that a cut changed a verdict."""
    parser = argparse.ArgumentParser(description="Measure how soon the text gate fires.")
    parser.add_argument("--runs", type=int, default=21, help="streams per kind")
    parser.add_argument("--splits", type=int, default=0, help="random cuts per stream")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args(argv)
    found = measure(options.runs, options.splits, random.Random(options.seed))
    print("tokens from onset to failure; early: onset at token 0-32, late: 128-2,000")
    print(f"{'kind':22} missed  least  early: median, max; late: median, max")
    for kind, row in found.items():
        parts = [f"{row[part].get(name, 0):6.0f}" for part in PARTS for name in ("median", "max")]
        print(f"{kind:22} {row['missed']:6} {row['least']:6}  {'  '.join(parts)}")
    other = sum(row["other_verdicts"] for row in found.values())
    if options.splits:
        print(f"verdicts that a cut changed: {other}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
