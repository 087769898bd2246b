"""What all messages share: frozen, versioned by key, tolerant of newer fields."""

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gatemesh_common.ids import derived_id, key_segment, new_message_id
from gatemesh_common.words import Identifier, UtcDatetime

# A header whose name begins with "x-" is not matched by the broker.
BUCKET_HEADER = "gatemesh-bucket"
LANE_HEADER = "gatemesh-lane"
PROOF_LANE = "proofs"
BUCKETS = 64
"""Instances are spread over so many; managers divide the buckets among shards of any number."""


def bucket_of(instance_id: str) -> int:
    """Return the bucket of an instance, the same everywhere and for ever."""
    return zlib.crc32(instance_id.encode("utf-8", "surrogatepass")) % BUCKETS


class Message(BaseModel):
    """Anything that crosses the broker. Unknown fields of a newer publisher are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    exchange: ClassVar[str]
    routing_key: ClassVar[str]
    """First words of the key; the number rises only on a break."""
    mandatory: ClassVar[bool] = True
    """True when the message has an obliged reader: the broker must route it or return it."""
    names_sender: ClassVar[bool] = False
    """True when it is sent with the broker's user, which the broker then proves."""

    message_id: str = Field(default_factory=new_message_id, min_length=1, max_length=200)
    timestamp: UtcDatetime
    traceparent: str | None = Field(default=None, max_length=200)
    """W3C trace context of the request that this message goes back to."""

    def key_words(self) -> tuple[str, ...]:
        """Return the words after the fixed part of the routing key."""
        return ()

    def placing(self) -> Mapping[str, str]:
        """Return the headers by which the broker places the message, beside its key."""
        return {}

    def key(self) -> str:
        """Return the full routing key."""
        return ".".join((self.routing_key, *(key_segment(word) for word in self.key_words())))


class HandmadeMessage(Message):
    """A message that people may publish by hand, too."""

    @model_validator(mode="before")
    @classmethod
    def complete_by_content(cls, data: object) -> object:
        """Give one without an id an id made from its content, and wrap free-text details."""
        if not isinstance(data, dict):
            return data
        filled = dict(data)
        if filled.get("message_id") is None:
            canonical = json.dumps(data, sort_keys=True, default=str)
            filled["message_id"] = derived_id(hashlib.sha256(canonical.encode()).hexdigest())
        if isinstance(filled.get("details"), str):
            filled["details"] = {"text": filled["details"]}
        return filled


class InstanceMessage(Message):
    """A message about one instance; its key ends with pool and instance."""

    instance_id: Identifier
    pool: Identifier = "default"

    def key_words(self) -> tuple[str, ...]:
        """Return pool and instance."""
        return (self.pool, self.instance_id)


class Span(BaseModel):
    """The part of an answer that is at fault, half-open, counted from its start."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    char_start: int | None = Field(default=None, ge=0)
    char_end: int | None = Field(default=None, ge=0)
    token_start: int | None = Field(default=None, ge=0)
    token_end: int | None = Field(default=None, ge=0)
