"""Which models this process has: all that are installed and wanted; the rest is said once."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gatemesh_common.errors import SettingsError
from gatemesh_shadow import embed, verifier
from gatemesh_shadow.batching import Batcher
from gatemesh_shadow.embed import Embedder, SentenceModel
from gatemesh_shadow.errors import ModelUnavailableError
from gatemesh_shadow.metrics import MODELS_READY
from gatemesh_shadow.packaged import embedding_model, is_installed, verifier_model
from gatemesh_shadow.settings import ShadowSettings
from gatemesh_shadow.verifier import VerifierModel
from gatemesh_shadow.verifying import Verifying

log = logging.getLogger(__name__)

GATHER_S = 0.02
VERIFIER_BATCH = 8


@dataclass(frozen=True, slots=True)
class Models:
    """What can be measured besides the replica score."""

    embedder: Embedder | None
    verifying: Verifying | None
    loaders: tuple[Callable[[], object], ...] = ()
    """Load what is used later; each may take a minute."""

    def load(self) -> None:
        """Load all models; one that cannot be loaded is left to who needs it first."""
        for loader in self.loaders:
            try:
                loader()
            except ModelUnavailableError as error:
                log.error("model_not_loaded", extra={"reason": str(error)})  # noqa: TRY400

    def labels(self) -> dict[str, bool]:
        """Which of them there are, for the log."""
        return {"embedding": self.embedder is not None, "verifier": self.verifying is not None}


def open_models(settings: ShadowSettings) -> Models:
    """Return the models that are wanted and installed.

    Raises:
        SettingsError: a model was named, and it cannot be used here.
    """
    loaders: list[Callable[[], object]] = []
    embedder = open_embedder(settings, loaders) if settings.embedding == "auto" else None
    verifying = open_verifier(settings, loaders) if settings.verifier == "auto" else None
    MODELS_READY.labels(model="embedding").set(embedder is not None)
    MODELS_READY.labels(model="verifier").set(verifying is not None)
    return Models(embedder, verifying, tuple(loaders))


def open_embedder(settings: ShadowSettings, loaders: list[Callable[[], object]]) -> Embedder | None:
    """Return the sentence models by language; raises as `open_models` does."""
    named = settings.embedding_model or settings.multilingual_model
    try:
        _require(embed.MODULES)
        embedding_model(settings.embedding_model)
    except ModelUnavailableError as error:
        _miss("embedding", error, named, "GATEMESH_SHADOW_EMBEDDING_MODEL")
        return None
    batchers = dict.fromkeys(
        settings.embedding_languages.split(","),
        _batcher(settings, settings.embedding_model, loaders),
    )
    if settings.multilingual_model:
        batchers["*"] = _batcher(settings, settings.multilingual_model, loaders)
    return Embedder(batchers)


def _batcher(
    settings: ShadowSettings, name: str, loaders: list[Callable[[], object]]
) -> Batcher[tuple[str, str], float]:
    model = SentenceModel(name, settings.embedding_batch, settings.torch_threads)
    loaders.append(model.load)
    return Batcher(model.cosines, max(settings.embedding_batch // 2, 1), GATHER_S)


def open_verifier(
    settings: ShadowSettings, loaders: list[Callable[[], object]]
) -> Verifying | None:
    """Return the verifier; raises as `open_models` does."""
    try:
        _, file_name = verifier_model(settings.verifier_model)
        _require(verifier.MODULES if file_name else verifier.MODULES[:2])
    except ModelUnavailableError as error:
        _miss("verifier", error, settings.verifier_model, "GATEMESH_SHADOW_VERIFIER_MODEL")
        return None
    model = VerifierModel(settings.verifier_model, settings.verifier_tokens, settings.torch_threads)
    loaders.append(model.load)
    batcher = Batcher(model.scores, VERIFIER_BATCH, GATHER_S)
    return Verifying(batcher, settings.verifier_per_s, time.monotonic)


def _require(modules: Sequence[str]) -> None:
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        raise ModelUnavailableError(f"not installed: {', '.join(missing)}")


def _miss(model: str, error: ModelUnavailableError, named: str, variable: str) -> None:
    """Say once that a model is missing; fail where it was asked for by name."""
    if named:
        raise SettingsError(f"{variable}: {error}; install gatemesh[models]") from error
    log.warning("model_missing", extra={"model": model, "reason": str(error)})
