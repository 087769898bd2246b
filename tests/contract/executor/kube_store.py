"""What the fake API server keeps: objects with versions, the history of their changes, patches."""

import asyncio
import copy
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]

NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
SPEC_KINDS = {"statefulsets", "deployments", "replicasets"}
"""Kinds whose `generation` rises with their spec."""


class ApiError(Exception):
    """A refusal, as the API words it."""

    def __init__(self, code: int, reason: str, message: str, causes: list[Json] | None = None):
        super().__init__(message)
        self.code = code
        self.status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": {"causes": causes or []},
            "code": code,
        }


def now() -> str:
    """Return this moment as the API writes it: in whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def matches(selector: str, labels: Mapping[str, str] | None) -> bool:
    """Return True when labels fit a selector of `name`, `name=value` and `name!=value` terms."""
    labels = labels or {}
    for term in filter(None, selector.split(",")):
        name, operator, value = term.partition("!=" if "!=" in term else "=")
        found = labels.get(name)
        fits = {"=": found == value, "!=": found != value, "": found is not None}
        if not fits[operator]:
            return False
    return True


def merged(target: Any, patch: Any) -> Any:
    """Return a JSON merge patch applied; `$patch: replace` is the strategic kind's own word."""
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


@dataclass(frozen=True)
class Change:
    """One entry of the history."""

    version: int
    plural: str
    kind: str
    item: Json


@dataclass
class Store:
    """All objects of one namespace."""

    namespace: str
    react: Callable[[], None] = lambda: None
    """Runs the controllers after each change."""
    kinds: dict[str, dict[str, Json]] = field(default_factory=dict)
    history: list[Change] = field(default_factory=list)
    compacted: int = 100
    """Changes up to this version are forgotten."""
    _version: int = 100
    _told: asyncio.Event = field(default_factory=asyncio.Event)
    _reacting: bool = False

    def of(self, plural: str) -> dict[str, Json]:
        """Return the objects of one kind by name."""
        return self.kinds.setdefault(plural, {})

    def get(self, plural: str, name: str) -> Json:
        """Return one object; raises 404."""
        if name not in self.of(plural):
            raise ApiError(404, "NotFound", f'{plural} "{name}" not found')
        return self.of(plural)[name]

    def version(self) -> int:
        """Return the version of the last change."""
        return self._version

    def create(self, plural: str, item: Json) -> Json:
        """Keep a new object; raises 409 when its name is taken."""
        name = item["metadata"]["name"]
        if not NAME.fullmatch(name):
            raise ApiError(422, "Invalid", f'{plural} "{name}" is invalid: metadata.name')
        if name in self.of(plural):
            raise ApiError(409, "AlreadyExists", f'{plural} "{name}" already exists')
        item = copy.deepcopy(item)
        item["metadata"] |= {
            "namespace": self.namespace,
            "uid": str(uuid.uuid4()),
            "creationTimestamp": now(),
        }
        if plural in SPEC_KINDS:
            item["metadata"]["generation"] = 1
        return self._keep(plural, item, "ADDED")

    def patch(self, plural: str, name: str, patch: Any) -> Json:
        """Change an object; raises 422 when the patch names another uid, 409 for a version."""
        old = self.get(plural, name)
        meant = patch.get("metadata") or {}
        if meant.get("uid") not in (None, old["metadata"]["uid"]):
            raise ApiError(422, "Invalid", f'{plural} "{name}" is invalid: metadata.uid')
        self.need_same(plural, old, meant)
        new = merged(old, {**patch, "metadata": _unversioned(meant)})
        if new == old:
            return old
        if plural in SPEC_KINDS and new["spec"] != old["spec"]:
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        return self._keep(plural, new, "MODIFIED")

    def need_same(self, plural: str, item: Json, meant: Json) -> None:
        """Raise 409 when this is not the object, or not the version of it, that is meant."""
        for part in ("uid", "resourceVersion"):
            if meant.get(part) not in (None, item["metadata"][part]):
                name = item["metadata"]["name"]
                raise ApiError(
                    409, "Conflict", f'Operation cannot be fulfilled on {plural} "{name}"'
                )

    def remove(self, plural: str, name: str) -> Json:
        """Forget an object."""
        item = copy.deepcopy(self.of(plural).pop(name))
        return self._keep(plural, item, "DELETED")

    def compact(self) -> None:
        """Forget the history so far, as etcd does at times."""
        self.compacted = self._version
        self.history.clear()

    def since(self, plural: str, version: int) -> Iterator[Change]:
        """Yield the changes of one kind after a version; raises 410 when they are forgotten."""
        if version < self.compacted:
            raise ApiError(
                410, "Expired", f"too old resource version: {version} ({self.compacted})"
            )
        return (one for one in self.history if one.plural == plural and one.version > version)

    def next_change(self) -> asyncio.Event:
        """Return what is set by the next change."""
        return self._told

    def _keep(self, plural: str, item: Json, kind: str) -> Json:
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        if kind != "DELETED":
            self.of(plural)[item["metadata"]["name"]] = item
        self.history.append(Change(self._version, plural, kind, copy.deepcopy(item)))
        told, self._told = self._told, asyncio.Event()
        told.set()
        self._run_controllers()
        return item

    def _run_controllers(self) -> None:
        if self._reacting:
            return
        self._reacting = True
        try:
            before = -1
            while before != self._version:
                before = self._version
                self.react()
        finally:
            self._reacting = False


def _unversioned(metadata: Json) -> Json:
    return {
        name: value for name, value in metadata.items() if name not in ("uid", "resourceVersion")
    }
