"""The AsyncAPI document: every message, made from the classes that cross the broker."""

import ast
import inspect
import json
import textwrap
import tomllib
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from gatemesh_common.broker import WORK_QUEUES, WorkQueue
from gatemesh_common.messages import MESSAGES, HandmadeMessage, Message

PAGE = Path("docs", "asyncapi.yaml")
SAMPLES = Path("tests", "data", "wire")
HEADER = "# Made by `./mesh asyncapi` from libs/common/gatemesh_common/messages.py: do not edit.\n"
HEADERS_NAME = "Headers"
HEADERS = {
    "type": "object",
    "description": "What every message carries beside its body.",
    "properties": {
        "cloudEvents:specversion": {"type": "string", "const": "1.0"},
        "cloudEvents:id": {"type": "string"},
        "cloudEvents:type": {"type": "string"},
        "cloudEvents:source": {"type": "string"},
        "cloudEvents:time": {"type": "string", "format": "date-time"},
        "traceparent": {"type": "string", "description": "W3C trace context."},
    },
}

Part = dict[str, Any]
"""A part of the document."""


class Untitled(GenerateJsonSchema):
    """Makes schemas without a title that only repeats the field's name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leave it out."""
        del schema
        return False


def document(repository: Path) -> Part:
    """Return the whole document, AsyncAPI 3."""
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    groups = channel_groups(MESSAGES)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "gatemesh",
            "version": project["version"],
            "description": f"{project['description']}. docs/messages.md and docs/extend.md tell "
            "more. `send` means that gatemesh publishes it and you may read it.",
            "license": {"name": project["license"]},
        },
        "defaultContentType": "application/json",
        "servers": {
            "broker": {"host": "127.0.0.1:5672", "protocol": "amqp", "protocolVersion": "0-9-1"}
        },
        "channels": {name: channel(kinds) for name, kinds in groups.items()},
        "operations": dict(
            operation for name, kinds in groups.items() for operation in operations(name, kinds)
        ),
        "components": {
            "messages": {kind.__name__: message(kind, repository) for kind in MESSAGES},
            "schemas": {**schemas(MESSAGES), HEADERS_NAME: HEADERS},
        },
    }


def channel_groups(kinds: Iterable[type[Message]]) -> dict[str, list[type[Message]]]:
    """Return the classes by the channel that they share, which is their routing key."""
    groups: dict[str, list[type[Message]]] = {}
    for kind in kinds:
        groups.setdefault(kind.routing_key.replace(".", "-"), []).append(kind)
    return groups


def key_words(kind: type[Message]) -> tuple[str, ...]:
    """Return the names of the fields that a message's key ends with."""
    named: dict[str, Any] = {name: name for name in kind.model_fields}
    return kind.model_construct(**named).key_words()


def channel(kinds: list[type[Message]]) -> Part:
    """Return one routing key of one exchange."""
    first = kinds[0]
    words = key_words(first)
    return {
        "address": ".".join((first.routing_key, *(f"{{{word}}}" for word in words))),
        "messages": {kind.__name__: reference("messages", kind.__name__) for kind in kinds},
        "parameters": {word: parameter(first, word) for word in words},
        "bindings": {
            "amqp": {
                "is": "routingKey",
                "exchange": {
                    "name": first.exchange,
                    "type": "topic",
                    "durable": True,
                    "autoDelete": False,
                    "vhost": "/",
                },
                "bindingVersion": "0.3.0",
            }
        },
        "x-queues": [queue.name for queue in WORK_QUEUES if reads(queue, first)],
    }


def parameter(kind: type[Message], word: str) -> Part:
    """Return one word of a key; dots, wildcards and spaces in it stand as underscores."""
    text = described(kind, word)
    place = {"location": f"$message.payload#/{word}"}
    return {"description": text, **place} if text else place


def reads(queue: WorkQueue, kind: type[Message]) -> bool:
    """True when a queue gets messages of this class."""
    prefix = queue.routing_key.removesuffix("#").removesuffix(".")
    return queue.exchange == kind.exchange and kind.routing_key.startswith(prefix)


def operations(name: str, kinds: list[type[Message]]) -> Iterable[tuple[str, Part]]:
    """Return what may be done with a channel: all may be read, and some be published by hand."""
    target = {"$ref": f"#/channels/{name}"}
    refs = [{"$ref": f"#/channels/{name}/messages/{kind.__name__}"} for kind in kinds]
    yield f"send-{name}", {"action": "send", "channel": target, "messages": refs}
    if issubclass(kinds[0], HandmadeMessage):
        yield f"receive-{name}", {"action": "receive", "channel": target, "messages": refs}


def message(kind: type[Message], repository: Path) -> Part:
    """Return one class of messages with its samples."""
    files = sorted((repository / SAMPLES).glob(f"{kind.__name__}.*.json"))
    return {
        "name": kind.__name__,
        "summary": inspect.cleandoc(kind.__doc__ or "").splitlines()[0],
        "contentType": "application/json",
        "headers": reference("schemas", HEADERS_NAME),
        "payload": reference("schemas", kind.__name__),
        "bindings": {"amqp": {"messageType": kind.__name__, "bindingVersion": "0.3.0"}},
        "x-mandatory": kind.mandatory,
        "examples": [
            {"name": file.name.removesuffix(".json"), "payload": json.loads(file.read_text())}
            for file in files
        ],
    }


def schemas(kinds: Iterable[type[Message]]) -> Part:
    """Return the JSON schemas of all classes, and of what they are made of."""
    read: Literal["validation"] = "validation"
    _, made = models_json_schema(
        [(kind, read) for kind in kinds],
        ref_template="#/components/schemas/{model}",
        schema_generator=Untitled,
    )
    found: Part = made["$defs"]
    for kind in model_classes(kinds):
        for name, field in found.get(kind.__name__, {}).get("properties", {}).items():
            if text := described(kind, name):
                field["description"] = text
    return found


def model_classes(kinds: Iterable[type[BaseModel]]) -> set[type[BaseModel]]:
    """Return the classes and every model that their modules define."""
    modules = {inspect.getmodule(one) for kind in kinds for one in kind.__mro__[:-1]}
    return {
        one
        for module in modules
        if module is not None
        for _, one in inspect.getmembers(module, inspect.isclass)
        if issubclass(one, BaseModel)
    }


def described(kind: type[BaseModel], name: str) -> str:
    """Return the docstring under a field, from the class that says it."""
    for one in kind.__mro__:
        if name in vars(one).get("__annotations__", {}):
            return docstrings(one).get(name, "")
    return ""


def docstrings(kind: type) -> dict[str, str]:
    """Return the docstrings under the fields of a class."""
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    found = {}
    for field, after in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = after.value if isinstance(after, ast.Expr) else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                found[field.target.id] = " ".join(text.value.split())
    return found


def reference(section: str, name: str) -> Part:
    """Return a reference to a component."""
    return {"$ref": f"#/components/{section}/{name}"}


def rendered(repository: Path) -> str:
    """Return the document as the file holds it."""
    # Parts that are used twice are written twice: other readers know no anchors.
    plain = json.loads(json.dumps(document(repository)))
    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)
    return HEADER + text


def write(repository: Path) -> Path:
    """Write the file anew and return its path."""
    path = repository / PAGE
    path.write_text(rendered(repository), encoding="utf-8")
    return path
