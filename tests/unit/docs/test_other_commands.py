"""Commands of other programs that the pages show name what this repository has."""

import re
import tomllib

import pytest
import yaml

from .pages import PAGES, REPOSITORY, Shown, commands

SHOWN = sorted({shown for path in PAGES for shown in commands(path)}, key=str)
NEWS = "CHANGELOG.md"
"""Tells extras by the package's name, wherever people have it from."""
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
EXTRAS = {name.replace("_", "-") for name in PROJECT["optional-dependencies"]}
"""As pip compares them."""
COMPOSE = yaml.safe_load((REPOSITORY / "compose.yaml").read_text())["services"]
PROFILES = {name for one in COMPOSE.values() for name in one.get("profiles", ())}
ONE_SERVICE = ("run", "exec", "port")
SOME_SERVICES = ("restart", "logs", "stop", "start")
DOCKERFILE = (REPOSITORY / "deploy/docker/Dockerfile").read_text()
TARGETS = set(re.findall(r"^FROM .* AS (\w+)$", DOCKERFILE, re.MULTILINE))


def of(*words: str) -> list[Shown]:
    """Return what is shown and begins with such words."""
    return [one for one in SHOWN if one.words[: len(words)] == words]


PIP = [
    (shown, word)
    for shown in of("pip", "install")
    for word in shown.words[2:]
    if "[" in word and shown.page != NEWS
]


@pytest.mark.parametrize(("shown", "word"), PIP, ids=str)
def test_what_pip_installs_is_a_clone_with_extras_that_there_are(shown: Shown, word: str) -> None:
    """No registry has the package: pip would find nothing, or a stranger's."""
    found = re.fullmatch(r"(\.|\.\./gatemesh)\[([\w,-]+)\]", word)
    assert found is not None, str(shown)
    assert set(found[2].split(",")) <= EXTRAS


def services_in(words: tuple[str, ...]) -> set[str]:
    """Return the services that a command of compose names."""
    plain = [word for word in words if not word.startswith("-")]
    for place, word in enumerate(plain):
        if word in ONE_SERVICE:
            return set(plain[place + 1 : place + 2])
        if word in SOME_SERVICES:
            return set(plain[place + 1 :])
    return set()


COMPOSED = of("docker", "compose")


@pytest.mark.parametrize("shown", COMPOSED, ids=str)
def test_compose_has_the_services_and_profiles(shown: Shown) -> None:
    """Under the names that it goes by."""
    words = shown.words[2:]
    # Behind a bracket another program goes on.
    own = tuple(word for word in words if not word.endswith(")"))
    cut = next((n for n, word in enumerate(words) if ")" in word), len(words))
    named = services_in(own[: cut + 1])
    assert named <= set(COMPOSE), str(shown)
    chosen = {words[n + 1] for n, word in enumerate(words) if word == "--profile"}
    assert chosen <= PROFILES


BUILT = [
    words[n + 1]
    for words in (one.words for one in SHOWN if one.words[0] == "docker")
    for n, word in enumerate(words)
    if word == "--target" and not words[n + 1].startswith("$")
]


@pytest.mark.parametrize("target", BUILT)
def test_the_dockerfile_has_the_target(target: str) -> None:
    """One for every image."""
    assert target in TARGETS


FILES = [
    (one, word)
    for one in SHOWN
    if one.words[0] in ("kubectl", "promtool", "docker")
    for word in one.words[1:]
    if word.startswith("deploy/")
]


@pytest.mark.parametrize(("shown", "path"), FILES, ids=str)
def test_files_are_there(shown: Shown, path: str) -> None:
    """Folders for kubectl hold a kustomization."""
    found = REPOSITORY / path
    assert found.exists(), str(shown)
    assert "-k" not in shown.words or (found / "kustomization.yaml").exists()


def test_commands_are_found_at_all() -> None:
    """A reader of pages that finds nothing would pass everything."""
    assert len(PIP) > 8
    assert len(COMPOSED) > 15
    assert len(FILES) > 4
    assert BUILT
    assert {"engines", "postgres"} <= {name for one in COMPOSED for name in services_in(one.words)}
