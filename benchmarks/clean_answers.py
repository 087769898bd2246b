"""Record answers of a healthy engine to many different prompts, in the format of the corpus."""

import gzip
import itertools
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

CONCURRENCY = 16
TIMEOUT_S = 300
LENGTHS_TOKENS = (24, 24, 24, 32, 48)
CHUNK = 64
"""Answers per gzip member: a recording that was cut off can be read up to there."""
STREAMED_SHARE = 0.2
MODES = {"greedy": 0.0, "temp07": 0.7, "temp1": 1.0}

TOPICS = (
    "volcanoes", "the water cycle", "honey bees", "the Roman Empire", "photosynthesis", "chess",
    "electric cars", "black holes", "bread", "the human heart", "democracy", "glaciers", "jazz",
    "vaccines", "the stock market", "dinosaurs", "coffee", "the moon", "solar panels", "tea",
    "earthquakes", "the French Revolution", "penguins", "gravity", "recycling", "chocolate",
    "the internet", "swimming", "Shakespeare", "the Amazon rainforest", "bicycles", "clouds",
    "magnets", "the Great Wall of China", "whales", "sleep", "bridges", "rice", "lightning",
    "libraries", "ants", "the violin", "tides", "computers", "onions", "the Silk Road", "snow",
    "mirrors", "horses", "the periodic table", "windmills", "maps", "paper", "owls", "yoga",
    "the solar system", "steel", "cheese", "deserts", "submarines",
)  # fmt: skip
JOBS = (
    "adds two numbers", "reverses a string", "finds the largest item of a list",
    "counts the words of a text", "checks whether a number is prime", "sorts a list of names",
    "reads a CSV file", "computes the factorial", "merges two dictionaries", "removes duplicates",
    "converts Celsius to Fahrenheit", "finds the longest word", "sums the digits of a number",
    "prints the Fibonacci series", "parses a date", "draws a triangle of stars",
)  # fmt: skip
TEMPLATES = {
    "q": ("What are the most important facts about {}?", "Why do people care about {}?",
          "Explain {} to a child.", "How did the study of {} begin?", "Tell me about {}."),
    "list": ("List five facts about {}.", "Give me ten words that have to do with {}.",
             "Name three books about {}.", "Make a numbered list of steps to learn about {}."),
    "prose": ("Write a short story about {}.", "Write a poem about {}.",
              "Write a letter to a friend about {}.", "Describe {} in two sentences."),
    "json": ("Return a JSON object that describes {} with the keys name, kind and facts.",
             "Give me a JSON list of five terms about {}."),
    "translation": ("Translate to French: I like to read about {}.",
                    "Translate to Spanish: my sister knows a lot about {}.",
                    "Translate to German: tell me more about {}."),
    "summary": ("Summarize in one sentence what one should know about {}.",
                "Give a title and a one-line summary for an article about {}."),
    "table": ("Make a Markdown table with three rows about {}.",
              "Compare two things about {} in a table."),
    "dialogue": ("Write a dialogue between a teacher and a pupil about {}.",
                 "Write three quiz questions about {} with answers."),
    "code": ("Write a Python class that models {}.", "Write an HTML page about {}."),
}  # fmt: skip
LANGUAGES = ("Python", "JavaScript", "C", "Rust", "Bash")


def prompts() -> list[tuple[str, str]]:
    """Return all prompts with their kinds, in a fixed order."""
    made = [
        (kind, template.format(topic))
        for kind, templates in TEMPLATES.items()
        for template in templates
        for topic in TOPICS
    ]
    made += [("code", f"Write a {name} program that {job}.") for name in LANGUAGES for job in JOBS]
    made += [("math", f"What is {left} times {left + 7}?") for left in range(3, 100, 4)]
    return made


def requests_of(count: int, *, model: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the lines to fill: request, kind, mode and whether it is streamed."""
    rng = random.Random(seed)
    modes = list(MODES.items())
    pairs = [(kind, text, mode) for kind, text in prompts() for mode in modes]
    for number, (kind, text, (mode, heat)) in enumerate(rng.sample(pairs, min(count, len(pairs)))):
        request: dict[str, Any] = {
            "model": model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": rng.choice(LENGTHS_TOKENS),
            "logprobs": True,
            "top_logprobs": 20,
            "return_token_ids": True,
            "temperature": heat,
            "seed": number,
        }
        streamed = rng.random() < STREAMED_SHARE
        if streamed:
            request["stream"] = True
        line = {"variant": "clean", "prompt_id": f"{kind}{number}", "kind": kind, "mode": mode}
        yield {**line, "stream": streamed, "request": request}


def record(engine: str, count: int, out: Path, *, seed: int = 1) -> int:
    """Ask the engine and write one line per answer; return how many were written."""
    model = served_model(engine)
    lines = list(requests_of(count, model=model, seed=seed))
    out.unlink(missing_ok=True)
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        answers = pool.map(lambda line: answered(engine, line), lines)
        for _ in range(0, len(lines), CHUNK):
            chunk = list(itertools.islice(answers, CHUNK))
            with gzip.open(out, "at", encoding="utf-8") as written:
                written.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in chunk)
    return len(lines)


def served_model(engine: str) -> str:
    """Return the name of the model that an engine serves."""
    with urllib.request.urlopen(  # noqa: S310 the engine is named by who runs this
        f"{engine}/v1/models", timeout=TIMEOUT_S
    ) as response:
        return str(json.load(response)["data"][0]["id"])


def answered(engine: str, line: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for one line and return it with status and body."""
    asked = urllib.request.Request(  # noqa: S310 as above
        f"{engine}/v1/chat/completions",
        json.dumps(line["request"]).encode(),
        {"content-type": "application/json"},
    )
    began = time.perf_counter()
    try:
        with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as response:  # noqa: S310
            status, body = response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        status, body = error.code, error.read().decode()
    return {**line, "status": status, "latency_s": time.perf_counter() - began, "body": body}
