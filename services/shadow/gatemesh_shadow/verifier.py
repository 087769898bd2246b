"""A small causal language model of our own that scores what others wrote."""

import importlib
import logging
import os
import threading
from collections.abc import Sequence
from typing import Any

from gatemesh_shadow.errors import ModelUnavailableError
from gatemesh_shadow.packaged import is_installed, verifier_model

log = logging.getLogger(__name__)

MODULES = ("torch", "transformers", "gguf", "accelerate")


class VerifierModel:
    """Mean negative log-likelihood per token (nats) of texts; loaded with the first one."""

    def __init__(self, setting: str, most_tokens: int, threads: int) -> None:
        self._setting = setting
        self._most_tokens = most_tokens
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any, Any] | None = None

    def load(self) -> tuple[Any, Any, Any]:
        """Return torch, the tokenizer and the model.

        Raises:
            ModelUnavailableError: something is missing; says what to install or set.
        """
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> tuple[Any, Any, Any]:
        path, file_name = verifier_model(self._setting)
        needed = MODULES if file_name else MODULES[:2]
        if not is_installed(*needed):
            raise ModelUnavailableError(
                f"{', '.join(needed)} are needed for the verifier; install gatemesh[models]"
            )
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TQDM_DISABLE", "1")
        torch = importlib.import_module("torch")
        torch.set_num_threads(self._threads)
        transformers = importlib.import_module("transformers")
        packed = {"gguf_file": file_name} if file_name else {}
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(path, **packed)
            model = transformers.AutoModelForCausalLM.from_pretrained(
                path, dtype=torch.float32, **packed, **_dequantized(transformers, file_name)
            )
        except (OSError, ValueError, KeyError) as error:
            raise ModelUnavailableError(
                f"the verifier {path!r} cannot be loaded ({type(error).__name__}); set another one"
            ) from error
        if torch.cuda.is_available():
            model = model.half().to("cuda")
        return torch, tokenizer, model.eval()

    def scores(self, texts: Sequence[str]) -> list[tuple[float, int]]:
        """Mean NLL in nats and number of tokens scored, for each text; one batch, padded."""
        torch, tokenizer, model = self.load()
        rows = [self._ids(tokenizer, text) for text in texts]
        width = max(map(len, rows))
        ids = torch.zeros((len(rows), width), dtype=torch.long)
        mask = torch.zeros((len(rows), width), dtype=torch.long)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = torch.tensor(row)
            mask[place, : len(row)] = 1
        with torch.inference_mode():
            hidden = model.model(ids.to(model.device), attention_mask=mask.to(model.device))[0]
            return [_score(torch, model, hidden[at], row) for at, row in enumerate(rows)]

    def _ids(self, tokenizer: Any, text: str) -> list[int]:
        found = list(tokenizer(text)["input_ids"])[: self._most_tokens]
        start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else 0
        return found if found[:1] == [start] else [start, *found]


def _dequantized(transformers: Any, file_name: str | None) -> dict[str, Any]:
    """Newer versions keep packed weights packed unless told otherwise."""
    config = getattr(transformers, "GgufConfig", None) if file_name else None
    return {"quantization_config": config(dequantize=True)} if config else {}


def _score(torch: Any, model: Any, hidden: Any, row: Sequence[int]) -> tuple[float, int]:
    count = len(row) - 1
    if count < 1:
        return 0.0, 0
    logits = model.lm_head(hidden[:count]).float()
    wanted = torch.tensor(row[1:], device=logits.device)
    picked = logits.gather(1, wanted[:, None])[:, 0]
    nats = torch.logsumexp(logits, dim=1) - picked
    return float(nats.mean()), count
