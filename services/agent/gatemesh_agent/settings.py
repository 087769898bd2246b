"""What the agent reads from its environment."""

import os
import secrets
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from gatemesh_agent.figures_feed import FiguresAddress, read_address
from gatemesh_agent.keys import MOST_PER_MIN
from gatemesh_agent.labels import labels_of
from gatemesh_common.settings import ServiceSettings

Pairs = Annotated[dict[str, str], NoDecode]
"""Written `name=value,name=value`."""

Names = Annotated[tuple[str, ...], NoDecode]
"""Written `name,name`."""

Seconds = Annotated[float, Field(gt=0, le=86_400)]


def read_pairs(text: object) -> object:
    """Read `name=value,name=value`; anything but text is returned as it is.

    Raises:
        ValueError: a part is not of that form, or a name comes twice.
    """
    if not isinstance(text, str):
        return text
    pairs: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, sign, value = item.partition("=")
        if not sign or not name.strip() or not value.strip():
            raise ValueError("write name=value,name=value")
        if name.strip() in pairs:
            raise ValueError("a name comes twice")
        pairs[name.strip()] = value.strip()
    return pairs


def read_names(text: object) -> object:
    """Read `name,name`; anything but text is returned as it is.

    Raises:
        ValueError: a name comes twice.
    """
    if not isinstance(text, str):
        return text
    names = tuple(filter(None, (part.strip() for part in text.split(","))))
    if len(set(names)) != len(names):
        raise ValueError("a name comes twice")
    return names


class AgentSettings(ServiceSettings):
    """Where the agent listens, which instances it serves, and how long it waits for them."""

    model_config = SettingsConfigDict(env_prefix="GATEMESH_AGENT_")

    id: str = Field(default="agent-0", min_length=1, max_length=200, pattern=r"^[\w.:-]+$")
    """Name of this agent; unique within the pool."""

    pool: str = Field(default="default", min_length=1, max_length=200)
    """Pool whose routing table is followed."""

    mode: Literal["gateway", "sidecar"] = "gateway"
    """`gateway` serves the pool; `sidecar` only the one instance named in INSTANCES."""

    host: str = "127.0.0.1"
    """Address that clients connect to."""

    port: int = Field(default=8080, ge=0, le=65535)
    """Port that clients connect to; 0 takes a free one."""

    admin_port: int = Field(default=9101, ge=0, le=65535)
    """Port of metrics, liveness and readiness; 0 takes a free one."""

    workers: int = Field(default=1, ge=0, le=256)
    """Processes that serve clients behind the one port, `ID-w0`, `ID-w1`, ...; 0: one per core."""

    instances: Pairs = Field(default_factory=dict)
    """Instances to serve until the first routing table: `engine-0=http://host:port,...`."""

    spool_dir: Path = Path("spool")
    """Folder for what the broker has not confirmed yet, and for the last routing table."""

    spool_max_messages: int = Field(default=100_000, ge=100, le=10_000_000)
    """Messages kept while the broker is away; beyond it the oldest telemetry goes first."""

    top_logprobs: int = Field(default=20, ge=0, le=100)
    """Log probabilities asked per token where the client asked none; 0: none."""

    logprobs_share: float = Field(default=1.0, ge=0, le=1)
    """Share of requests for which they are asked, where GUARD is `observe`; the others' L2 and L3
    are skipped. All are at a suspect instance, and for 60 s after a failure of it."""

    top_logprobs_busy: int | None = Field(default=None, ge=10, le=100)
    """Log probabilities asked per token while the agent is busy; unset: as many as ever."""

    busy_core_share: float = Field(default=0.8, gt=0, le=1)
    """Share of a core that the agent's process takes from which on it is busy."""

    vocab_sizes: Pairs = Field(default_factory=dict)
    """Vocabulary size by model name, `model=49152,...`; sharpens the bounds of gate L3."""

    learn_vocab_sizes: bool = True
    """Whether each life of an engine is asked once, by a request it refuses, for its vocabulary."""

    plugin_socket: str = Field(default="", max_length=200)
    """Where the engines' plugin sends exact figures: `/path/of.sock` or `udp:HOST:PORT`."""

    plugin_grace_s: float = Field(default=0.75, gt=0, le=30)
    """Time after an answer's end in which exact figures still count; L3 concludes after it."""

    fingerprint_key: SecretStr = Field(default_factory=lambda: SecretStr(secrets.token_hex(32)))
    """Key of prompt and tenant hashes, 16 characters or more; the same for all agents of a pool."""

    max_body_bytes: int = Field(default=64 * 2**20, ge=1024, le=2**30)
    """Largest request body on a guarded path; above it the answer is 413."""

    max_header_bytes: int = Field(default=64 * 2**10, ge=1024, le=2**20)
    """Longest request line or header field, in either direction."""

    max_answer_bytes: int = Field(default=16 * 2**20, ge=1024, le=2**31)
    """Largest answer that is held to be judged whole; a larger one passes unjudged."""

    max_event_bytes: int = Field(default=4 * 2**20, ge=1024, le=2**30)
    """Largest streamed event that is held to be judged; a larger one passes unjudged."""

    connect_s: Seconds = 2.0
    """Longest wait for a connection to an instance."""

    first_byte_s: Seconds = 300.0
    """Longest wait for the first byte of an answer; queueing and prefill count."""

    idle_s: Seconds = 120.0
    """Longest silence within an answer."""

    total_s: Seconds = 3600.0
    """Longest time for one answer."""

    body_s: Seconds = 300.0
    """Longest wait for a request's body on a guarded path; after it the answer is 408."""

    client_stall_s: Seconds = 300.0
    """Longest wait for a client that does not read its answer."""

    pooled_idle_s: float = Field(default=3.0, gt=0, le=60)
    """Time an unused connection to an instance is kept; below the engine's own (vLLM: 5 s)."""

    guard: Literal["observe", "shield", "rescue"] = "observe"
    """`observe` reports only; `shield` keeps a bad answer that is not streamed from its client;
    `rescue` also has another instance go on with a stream that turns bad, or is broken off."""

    shield_on: Literal["any", "hard"] = "any"
    """What `shield` and `rescue` act on: `any` failure, or only those with `hard` proof."""

    rescue_hold_tokens: int = Field(default=64, ge=1, le=4096)
    """Most tokens of a stream that are held back while it is in doubt."""

    rescue_hold_ms: float = Field(default=3000.0, gt=0, le=60_000)
    """Longest time for which they are."""

    rescue_continuations: int = Field(default=2, ge=0, le=10)
    """Times that one answer may go elsewhere for an engine's fault; 0: never for an error."""

    rescue_per_minute: int = Field(default=600, ge=0, le=1_000_000)
    """Answers that do so in a minute, all together: beyond it the whole pool may be at fault."""

    rescue_tenant_share: float = Field(default=0.5, gt=0, le=1)
    """Share of these that one tenant may use."""

    rescue_stall_s: Seconds = 10.0
    """Longest time without a token after which a stream goes on elsewhere, once it had one."""

    rescue_media: bool = False
    """Whether answers to prompts with pictures or sound may go on elsewhere."""

    attribution_wait_s: float = Field(default=1.5, gt=0, le=60)
    """Longest time for which hard proof is withheld for a second opinion."""

    attribution_soft_wait_s: float = Field(default=10.0, gt=0, le=300)
    """The same for soft evidence, which is in no hurry."""

    attribution_parallel: int = Field(default=4, ge=0, le=64)
    """Second tries under way at once; 0 asks for none."""

    attribution_per_minute: int = Field(default=60, ge=0, le=10_000)
    """Second tries begun in a minute; beyond it failures count as they are."""

    shadow_share: float = Field(default=0.05, ge=0, le=1)
    """Share of answers that go to the shadow, prompt and all, to be compared."""

    shadow_share_suspect: float = Field(default=1.0, ge=0, le=1)
    """The same for an instance that is suspect, or that failed a gate within the last minute."""

    shadow_per_s: float = Field(default=20.0, ge=0, le=10_000)
    """Most answers sent to the shadow in a second, whatever their cause; 0 sends none at all."""

    traces_share: float = Field(default=0.05, ge=0, le=1)
    """With traces on: of the requests that come without a trace, the share whose spans are told."""

    shadow_max_bytes: int = Field(default=256 * 2**10, ge=1024, le=16 * 2**20)
    """Largest request and answer that go to the shadow together."""

    stall_s: Seconds = 20.0
    """Longest time without a token although requests wait, before an instance is looked at."""

    stall_first_s: Seconds = 60.0
    """The same where no request has got its first token yet: queueing and prefill count."""

    stall_probe_s: Seconds = 10.0
    """Longest wait for one token of our own from an instance that is looked at."""

    reroutes: int = Field(default=2, ge=0, le=10)
    """Other instances tried for a request that fails before its first byte."""

    shun_s: float = Field(default=1.0, ge=0, le=60)
    """Time for which an instance that refused a connection is taken only if there is no other."""

    telemetry_every_s: Seconds = 5.0
    """Length of a telemetry window."""

    probe_suite: Path | None = None
    """Probe prompts, a TOML file or a folder of them; unset takes those that come along."""

    probe_parallel: int = Field(default=2, ge=1, le=64)
    """Probe prompts that run at once on one instance."""

    probe_per_min: int = Field(default=12, ge=1, le=600)
    """Probe suites per minute on one instance; further tickets wait their turn."""

    probe_health_s: Seconds = 60.0
    """Longest wait for `/health` before a probe suite fails."""

    probe_answer_s: Seconds = 30.0
    """Longest wait for the answer to one probe prompt; up to four times that when busy."""

    probe_api_key: str | None = Field(default=None, min_length=1, repr=False)
    """Key that the engines ask for; probes send it as bearer token. Clients bring their own,
    unless they show one of KEYS_FILE: then this one goes on instead."""

    keys_file: Path | None = None
    """File of the API keys that clients must show, followed while running; unset: nobody must."""

    key_requests_per_min: int = Field(default=0, ge=0, le=MOST_PER_MIN)
    """Requests that a key may send in a minute, unless the file says otherwise; 0: any number."""

    key_tokens_per_min: int = Field(default=0, ge=0, le=MOST_PER_MIN)
    """The same of tokens, those of prompts and of answers; counted when an answer has ended."""

    expose: Literal["all", "api"] = "all"
    """Paths of the engines that clients reach: `all`, or `api`: those that are made for them."""

    stop_grace_s: float = Field(default=30.0, ge=0, le=3600)
    """Time that running requests get after SIGTERM."""

    labels: Pairs = Field(default_factory=dict)
    """Captures say: `host=h1` of all instances, `engine-0.gpu=H200` of one; 32 each at most."""

    gates: Names = ()
    """Plugged-in gates to run, `name,name`, of those whose packages are installed; none without."""

    gate_settings: Pairs = Field(default_factory=dict)
    """Settings of those gates: `name.key=value,name.key=value`."""

    @field_validator("gates", mode="before")
    @classmethod
    def _read_names(cls, text: object) -> object:
        return read_names(text)

    @field_validator("instances", "vocab_sizes", "gate_settings", "labels", mode="before")
    @classmethod
    def _read_pairs(cls, text: object) -> object:
        return read_pairs(text)

    @field_validator("instances")
    @classmethod
    def _check_addresses(cls, instances: dict[str, str]) -> dict[str, str]:
        for name, address in instances.items():
            if not address.startswith(("http://", "https://")):
                raise ValueError(f"the address of {name} must begin with http:// or https://")
        return {name: address.rstrip("/") for name, address in instances.items()}

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, labels: dict[str, str]) -> dict[str, str]:
        labels_of(labels)
        return labels

    @field_validator("vocab_sizes")
    @classmethod
    def _check_sizes(cls, sizes: dict[str, str]) -> dict[str, str]:
        for model, size in sizes.items():
            if not size.isdigit() or int(size) < 2:  # noqa: PLR2004
                raise ValueError(f"the size of {model} must be a whole number above 1")
        return sizes

    @field_validator("plugin_socket")
    @classmethod
    def _check_address(cls, text: str) -> str:
        if text:
            read_address(text)
        return text

    @field_validator("fingerprint_key")
    @classmethod
    def _check_key(cls, key: SecretStr) -> SecretStr:
        if len(key.get_secret_value()) < 16:  # noqa: PLR2004
            raise ValueError("must have 16 characters or more")
        return key

    @model_validator(mode="after")
    def _name_the_sidecars_instance(self) -> "AgentSettings":
        if self.mode == "sidecar" and len(self.instances) != 1:
            raise ValueError("GATEMESH_AGENT_INSTANCES must name one instance in sidecar mode")
        return self

    @model_validator(mode="after")
    def _keep_what_the_guard_promises(self) -> "AgentSettings":
        if self.guard != "observe" and self.logprobs_share < 1:
            raise ValueError(
                f"GATEMESH_AGENT_LOGPROBS_SHARE must be 1 with GATEMESH_AGENT_GUARD={self.guard}:"
                " an answer that is not measured cannot be withheld; use observe to sample"
            )
        return self

    @model_validator(mode="after")
    def _refuse_what_workers_cannot_share(self) -> "AgentSettings":
        if self.plugin_socket and self.worker_count > 1:
            raise ValueError(
                "GATEMESH_AGENT_PLUGIN_SOCKET needs GATEMESH_AGENT_WORKERS=1: an engine's plugin"
                " sends to one process; run several agents, each with a socket of its own"
            )
        return self

    @property
    def worker_count(self) -> int:
        """How many processes serve."""
        return self.workers or len(os.sched_getaffinity(0))

    @property
    def hash_key(self) -> bytes:
        """The key of the keyed hashes."""
        return self.fingerprint_key.get_secret_value().encode()

    @property
    def figures_address(self) -> FiguresAddress | None:
        """Where exact figures are received; None without a plugin."""
        return read_address(self.plugin_socket) if self.plugin_socket else None

    def vocab_size(self, model: str) -> int | None:
        """Return the vocabulary size of a model, None when it is not set."""
        size = self.vocab_sizes.get(model)
        return int(size) if size else None
