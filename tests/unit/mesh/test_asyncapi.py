"""The AsyncAPI document follows the code, and is a valid one."""

import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from gatemesh_common.broker import WORK_QUEUES
from gatemesh_common.messages import MESSAGES, Message, Verdict
from gatemesh_mesh.asyncapi import PAGE, SAMPLES, channel, described, key_words, rendered, write
from gatemesh_mesh.stack import REPOSITORY

# The packaged schema of the AsyncAPI initiative (npm @asyncapi/specs 6.11.1, Apache-2.0).
SCHEMA = REPOSITORY / "tests" / "data" / "asyncapi-3.0.0.json.gz"
DOCUMENT: dict[str, Any] = yaml.safe_load((REPOSITORY / PAGE).read_text(encoding="utf-8"))
WIRE = sorted((REPOSITORY / SAMPLES).glob("*.json"))


def test_the_file_follows_the_code() -> None:
    """Whoever changes a message runs `./mesh asyncapi`."""
    assert (REPOSITORY / PAGE).read_text(encoding="utf-8") == rendered(REPOSITORY), (
        "docs/asyncapi.yaml is old: run ./mesh asyncapi and commit it"
    )


def test_it_is_valid() -> None:
    """Generators and editors of others read it."""
    schema = json.loads(gzip.decompress(SCHEMA.read_bytes()))
    validator = jsonschema.Draft7Validator(schema)
    assert [error.message for error in validator.iter_errors(DOCUMENT)] == []
    broken = DOCUMENT | {"channels": {"verdict-v1": {"address": 7}}}
    assert not validator.is_valid(broken)


def schema_of(name: str) -> dict[str, Any]:
    """Return the schema of a message with all that it refers to."""
    return {
        "$ref": f"#/components/schemas/{name}",
        "components": {"schemas": DOCUMENT["components"]["schemas"]},
    }


@pytest.mark.parametrize("sample", WIRE, ids=lambda it: it.stem)
def test_every_sample_fits_its_schema(sample: Path) -> None:
    """What a consumer in another language is generated from takes what is really sent."""
    name = sample.name.split(".")[0]
    body = json.loads(sample.read_text())
    validator = jsonschema.Draft202012Validator(schema_of(name))
    assert [error.message for error in validator.iter_errors(body)] == []
    assert not validator.is_valid({"timestamp": 7})
    examples = DOCUMENT["components"]["messages"][name]["examples"]
    assert {"name": sample.name.removesuffix(".json"), "payload": body} in examples


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda it: it.__name__)
def test_the_address_is_the_key(kind: type[Message]) -> None:
    """Filled with a message's own fields, it is what the message is published with."""
    sample = next(path for path in WIRE if path.name.startswith(f"{kind.__name__}."))
    message = kind.model_validate_json(sample.read_text())
    address = str(channel([kind])["address"])
    values = {word: str(getattr(message, word)) for word in key_words(kind)}
    # The gate stands in lower case there.
    assert address.format(**values).lower() == message.key().lower()


def test_every_queue_is_named_where_it_reads() -> None:
    """So that nobody takes a service's queue for his own."""
    named = {queue for one in DOCUMENT["channels"].values() for queue in one["x-queues"]}
    work = {queue.name for queue in WORK_QUEUES}
    assert named == work


def test_who_may_publish_by_hand() -> None:
    """Requests and alerts; all else is gatemesh's to send."""
    received = {
        operation["channel"]["$ref"].rsplit("/", 1)[1]
        for operation in DOCUMENT["operations"].values()
        if operation["action"] == "receive"
    }
    assert received == {"verdict-v1", "request-v1", "trial-v1"}


def test_fields_are_described_as_in_the_code() -> None:
    """Also those of a class above, and none where there is nothing."""
    assert described(Verdict, "hard") == "True when the failure is proof and not only evidence."
    assert described(Verdict, "traceparent").startswith("W3C trace context")
    assert described(Verdict, "choice") == described(Verdict, "nonsense") == ""


def test_it_is_written(tmp_path: Path) -> None:
    """With a word on where it comes from."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "pyproject.toml").write_text((REPOSITORY / "pyproject.toml").read_text())
    text = write(tmp_path).read_text(encoding="utf-8")
    assert text.startswith("# Made by `./mesh asyncapi`")
    assert yaml.safe_load(text)["components"]["messages"]["Verdict"]["examples"] == []
