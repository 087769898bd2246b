"""Renders each kustomization once."""

import shutil
from collections.abc import Callable
from functools import cache

import pytest
from deploy.docker.make_secrets import make

from .rendered import DEV, MANIFESTS, NAMES, REPOSITORY, Object, render, tool

Render = Callable[[str], list[Object]]


@pytest.fixture(scope="session")
def rendering(tmp_path_factory: pytest.TempPathFactory) -> Render:
    """Give a function from a kustomization's name to its objects."""
    command = tool()
    if command is None:
        pytest.skip("neither kubectl nor kustomize is installed")
    # The passwords of the development overlay are made beside it: not in the working tree.
    copy = tmp_path_factory.mktemp("manifests")
    ignored = shutil.ignore_patterns("secrets")
    shutil.copytree(REPOSITORY / "deploy", copy / "deploy", symlinks=True, ignore=ignored)
    make(copy / MANIFESTS / DEV / "secrets")
    return cache(lambda name: render(command, copy / MANIFESTS / name))


@pytest.fixture(params=NAMES)
def items(request: pytest.FixtureRequest, rendering: Render) -> list[Object]:
    """Give the objects of every kustomization in turn."""
    return rendering(request.param)
