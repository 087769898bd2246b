"""Makes the packaged data from a folder of recorded answers: run by hand, kept for the record."""

import argparse
import gzip
import json
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

Record = dict[str, Any]

CLEAN_CUTS = {
    "code08": "num2\n```",
    "code10": "",
    "list18": "",
    "prose36": "human spirit.",
    "prose40": "",
    "q00": "",
    "q02": "",
    "sum50": "",
    "sum52": "",
    "tr26": "",
}
"""Recorded greedy answers fit to show, and the text after which to end those that rambled on."""

DAMAGED = {
    "nan_tensor": 1,
    "bitflip_msb_1": 1,
    "norm_zero": 1,
    "norm_div4": 2,
    "norm_x4": 2,
    "noise_layer1": 3,
    "noise_layer15": 3,
    "huge_tensor": 3,
    "embed_roll": 3,
    "swap_5_20": 3,
}
"""Variants taken, and how many answers of each decoding."""

DAMAGED_PROMPTS = ("q00", "prose36", "tr22", "prose42")
DIGITS = 4


def records(path: Path) -> Iterator[Record]:
    """The recorded requests of one file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def align(tokens: list[str], content: str) -> list[str]:
    """What each token added to the visible text: nothing for hidden tokens and part characters."""
    texts, position = [], 0
    for token in tokens:
        # Bytes that never became a character show as U+FFFD and belong to no token's text.
        rest = content[position:]
        lost = len(rest) - len(rest.lstrip("\ufffd"))
        whole = rest[:lost] + token
        visible = token if rest.startswith(token) else whole if rest.startswith(whole) else ""
        texts.append(visible)
        position += len(visible)
    return texts


def answer_of(record: Record) -> Record | None:
    """The recorded answer in packaged form; None where the engine refused."""
    if record["status"] != HTTPStatus.OK:
        return None
    parts = list(_parts(record))
    entries = [entry for part in parts for entry in part["logprobs"]]
    tokens = [entry["token"] for entry in entries]
    ids = [token_id for part in parts for token_id in part["token_ids"]]
    texts = align(tokens, "".join(part["text"] for part in parts))
    return {
        "prompt": record["request"]["messages"][-1]["content"],
        "mode": record["mode"],
        "steps": [
            [text, entry["token"], token_id, _short(entry["logprob"]), _top(entry)]
            for text, entry, token_id in zip(texts, entries, ids, strict=True)
        ],
    }


def _parts(record: Record) -> Iterator[Record]:
    if not record["stream"]:
        choice = json.loads(record["body"])["choices"][0]
        yield _part(choice, choice["message"]["content"])
        return
    for choice in _streamed_choices(record["body"]):
        if choice["logprobs"]:
            yield _part(choice, choice["delta"].get("content", ""))


def _streamed_choices(body: str) -> Iterator[Record]:
    for event in body.split("\n\n"):
        if event.startswith("data: {"):
            yield from json.loads(event[6:])["choices"]


def _part(choice: Record, text: str) -> Record:
    logprobs = choice["logprobs"]["content"]
    return {"logprobs": logprobs, "token_ids": choice["token_ids"], "text": text}


def _top(entry: Record) -> list[list[Any]]:
    return [[one["token"], _short(one["logprob"])] for one in entry["top_logprobs"]]


def _short(logprob: float | None) -> float | None:
    return None if logprob is None else round(logprob, DIGITS)


def cut(answer: Record, after: str, end_step: list[Any]) -> Record:
    """The answer up to and with the text `after`, then a real end-of-turn step."""
    if not after:
        return answer
    kept, text = [], ""
    for step in answer["steps"]:
        kept.append(step)
        text += step[0]
        if text.endswith(after):
            return {**answer, "steps": [*kept, end_step]}
    raise ValueError(f"the recorded answer does not contain {after!r}")


def pick_clean(recorded: Iterable[Record]) -> list[Record]:
    """The well-formed greedy answers, each ended by the model or cut after a sentence."""
    greedy = {
        record["prompt_id"]: answer
        for record in recorded
        if record["mode"] == "greedy" and (answer := answer_of(record))
    }
    end_step = greedy["q00"]["steps"][-1]
    return [cut(greedy[name], after, end_step) for name, after in CLEAN_CUTS.items()]


def pick_damaged(recorded: Iterable[Record], each: int) -> list[Record]:
    """Up to `each` answers per decoding, of prompts that show the damage well."""
    found: dict[tuple[str, str], Record] = {}
    for record in recorded:
        answer = answer_of(record)
        if answer:
            found.setdefault((record["prompt_id"], record["mode"]), answer)
    order = [*DAMAGED_PROMPTS, *(name for name, _ in found if name not in DAMAGED_PROMPTS)]
    picked = []
    for mode in ("greedy", "temp1"):
        have = [found[name, mode] for name in dict.fromkeys(order) if (name, mode) in found]
        picked += have[:each]
    return picked


def write(path: Path, value: object) -> None:
    """Write reproducible gzipped JSON: same input, same bytes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def main() -> None:
    """Pack `CORPUS` into `OUT/clean.json.gz` and `OUT/damaged.json.gz`."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    asked = parser.parse_args()
    write(asked.out / "clean.json.gz", pick_clean(records(asked.corpus / "clean.jsonl.gz")))
    damaged = {
        name: pick_damaged(records(asked.corpus / f"{name}.jsonl.gz"), each)
        for name, each in DAMAGED.items()
    }
    write(asked.out / "damaged.json.gz", damaged)


if __name__ == "__main__":
    main()
