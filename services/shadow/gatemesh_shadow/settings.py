"""What the shadow reads from its environment."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from gatemesh_common.settings import ServiceSettings


class ShadowSettings(ServiceSettings):
    """How much is compared, with which models, and what healthy instances may be burdened with."""

    model_config = SettingsConfigDict(env_prefix="GATEMESH_SHADOW_")

    state_dir: Path = Path("shadow-state")
    """Folder for what was measured between healthy instances; survives restarts."""

    admin_port: int = Field(default=9104, ge=0, le=65535)
    """Port of metrics, liveness and readiness; 0 takes a free one."""

    prefetch: int = Field(default=16, ge=1, le=500)
    """Samples handled at once."""

    max_age_s: float = Field(default=120.0, gt=0, le=3600)
    """Samples older than this are dropped and counted, in seconds."""

    request_deadline_s: float = Field(default=60.0, gt=0, le=600)
    """Longest wait for one answer of an instance, in seconds."""

    at_once: int = Field(default=8, ge=1, le=1000)
    """Own requests that run at once, over all instances."""

    at_once_per_instance: int = Field(default=2, ge=1, le=100)
    """Own requests that run at once on one instance."""

    per_instance_per_s: float = Field(default=5.0, gt=0, le=1000)
    """Own requests that are started on one instance in a second, at most."""

    api_key: SecretStr = SecretStr("")
    """Key that the instances ask for; empty when they ask for none."""

    score: bool = True
    """Whether the answer's tokens are scored by a healthy instance."""

    most_answer_tokens: int = Field(default=512, ge=8, le=100_000)
    """Tokens of an answer that are scored or generated again; the rest is left out."""

    second_answer_share: float = Field(default=0.1, ge=0, le=1)
    """Share of samples for which a second answer is generated, besides all taken on suspicion."""

    own_logprobs: Literal["raw", "processed"] = "raw"
    """What the engines report: `processed` (of `--logprobs-mode`) is compared only where raw and
    processed figures are equal: at temperature 0 or 1 without other sampling rules."""

    embedding: Literal["auto", "off"] = "auto"
    """`auto` compares by meaning where the model's libraries are installed; `off` never does."""

    embedding_model: str = ""
    """Folder or name of the sentence model; empty takes the packaged all-MiniLM-L6-v2."""

    embedding_languages: str = Field(default="en", pattern=r"^[a-z*]+(,[a-z*]+)*$")
    """Languages of that model, with commas; `code` is one, `*` is all."""

    embedding_threshold: float = Field(default=0.55, ge=-1, le=1)
    """Least cosine of two answers at temperature 0; belongs to the model, A/A may lower it."""

    embedding_threshold_sampled: float = Field(default=0.05, ge=-1, le=1)
    """The same for drawn answers."""

    embedding_batch: int = Field(default=64, ge=1, le=4096)
    """Texts that are embedded in one batch."""

    multilingual_model: str = ""
    """Sentence model for all other languages; empty skips their texts."""

    verifier: Literal["auto", "off"] = "auto"
    """`auto` scores texts by a small language model where its libraries are installed."""

    verifier_model: str = ""
    """Folder, name or GGUF file of the verifier; empty takes the packaged SmolLM2-135M."""

    verifier_per_s: float = Field(default=1.0, gt=0, le=1000)
    """Texts that the verifier scores in a second, at most; the rest is left out and counted."""

    verifier_tokens: int = Field(default=192, ge=32, le=4096)
    """Tokens of a text that the verifier scores."""

    torch_threads: int = Field(default=1, ge=1, le=256)
    """Processor threads that the models use."""

    calibrate: bool = True
    """Whether fixed prompts are put to pairs of healthy instances, to measure their noise."""

    calibrate_every_s: float = Field(default=86_400.0, ge=60, le=31_536_000)
    """Time after which a model version is measured again, in seconds."""
