"""Sentence-BERT: how alike two texts are in meaning, as a cosine."""

import importlib
import os
import threading
from collections.abc import Sequence
from typing import Any

from gatemesh_shadow.batching import Batcher
from gatemesh_shadow.errors import ModelUnavailableError
from gatemesh_shadow.packaged import embedding_model, is_installed

MODULES = ("torch", "sentence_transformers")


class SentenceModel:
    """One sentence model; loaded with the first text, in half precision where a GPU is."""

    def __init__(self, setting: str, batch_size: int, threads: int) -> None:
        self._setting = setting
        self._batch_size = batch_size
        self._threads = threads
        self._lock = threading.Lock()
        self._model: Any = None

    def load(self) -> Any:
        """Return the model.

        Raises:
            ModelUnavailableError: it or its libraries are not here; says what to do.
        """
        with self._lock:
            if self._model is None:
                self._model = self._loaded()
            return self._model

    def _loaded(self) -> Any:
        if not is_installed(*MODULES):
            raise ModelUnavailableError(
                "sentence-transformers is not installed; install gatemesh[models]"
            )
        path = embedding_model(self._setting)
        # A model by name comes from the local cache; a service must not fetch one by itself.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TQDM_DISABLE", "1")
        torch = importlib.import_module("torch")
        torch.set_num_threads(self._threads)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        transformers = importlib.import_module("sentence_transformers")
        try:
            model = transformers.SentenceTransformer(path, device=device)
        except (OSError, ValueError) as error:
            raise ModelUnavailableError(
                f"the sentence model {path!r} cannot be loaded ({type(error).__name__}); set the "
                "folder of one that is here"
            ) from error
        return model.half() if device == "cuda" else model

    def cosines(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The cosine of each pair; equal texts are embedded once, all in one sorted batch."""
        model = self.load()
        if not pairs:
            return []
        places = {text: place for place, text in enumerate(dict.fromkeys(_flat(pairs)))}
        # `encode` sorts by length, so that a batch holds little padding.
        vectors = model.encode(
            list(places),
            batch_size=self._batch_size,
            normalize_embeddings=True,
            convert_to_tensor=True,
            show_progress_bar=False,
        ).float()
        firsts = vectors[[places[one] for one, _ in pairs]]
        seconds = vectors[[places[other] for _, other in pairs]]
        return [float(value) for value in (firsts * seconds).sum(dim=1)]


def _flat(pairs: Sequence[tuple[str, str]]) -> list[str]:
    return [text for pair in pairs for text in pair]


class Embedder:
    """Cosines for texts of the languages that a model knows; batched across samples."""

    def __init__(self, models: dict[str, Batcher[tuple[str, str], float]]) -> None:
        self._models = models

    def knows(self, language: str) -> bool:
        """True when one of the models takes texts of this language."""
        return self._batcher(language) is not None

    async def cosine(self, language: str, first: str, second: str) -> float | None:
        """The cosine of two texts; None in a language that no model knows."""
        batcher = self._batcher(language)
        return None if batcher is None else await batcher.submit((first, second))

    def _batcher(self, language: str) -> Batcher[tuple[str, str], float] | None:
        return self._models.get(language) or self._models.get("*")
