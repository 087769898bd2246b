"""Compile the agent's gates and readers to machine code, into a folder of their own.

    python -m deploy.compiled.agent FOLDER
    PYTHONPATH=FOLDER python -m gatemesh_agent

The folder holds a copy of the packages with extension modules beside the sources they were made
from, so that a change of the sources elsewhere is never mixed with old machine code. Wheels stay
pure: who does not compile runs the same sources. Needs a C compiler and `pip install mypy[mypyc]`.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("services/agent/gatemesh_agent", "libs/common/gatemesh_common")
READERS = (
    *(
        "stripping",
        "responses_stripping",
        "strippers",
        "sse",
        "stream",
        "transcript",
        "exact_lines",
    ),
    *("reading", "responses_reading", "messages_reading", "dialects", "collected", "measured"),
    *("telemetry", "recent", "headers", "watchdog", "requests", "signs", "sampling"),
)
COMMON = ("gates", "sketches", "delays")
LEFT_OUT = ("characters",)
"""mypyc knows no lone surrogates in string literals."""

SETUP = """
from mypyc.build import mypycify
from setuptools import setup

setup(name="gatemesh-compiled", packages=[], ext_modules=mypycify({files!r}, opt_level="3"))
"""
TYPES = """
[tool.mypy]
strict = true
plugins = ["pydantic.mypy"]
namespace_packages = true
explicit_package_bases = true
"""


class CompileError(Exception):
    """The compiler refused, or there is none; its messages are above."""


def sources(folder: Path) -> list[str]:
    """Return the files to compile, relative to a folder that holds the packages."""
    agent, common = folder / "gatemesh_agent", folder / "gatemesh_common"
    gates = [each for each in sorted((agent / "gates").glob("*.py")) if is_wanted(each)]
    readers = [agent / f"{name}.py" for name in READERS]
    shared = [common / f"{name}.py" for name in COMMON]
    return [str(each.relative_to(folder)) for each in (*gates, *readers, *shared)]


def is_wanted(path: Path) -> bool:
    """Return True for a module that has anything to compile, and can be."""
    return path.stem != "__init__" and path.stem not in LEFT_OUT


def build(folder: Path) -> None:
    """Copy the packages into an empty folder and compile them there.

    Raises:
        CompileError: the compiler refused.
    """
    folder.mkdir(parents=True)
    for package in PACKAGES:
        source = REPOSITORY / package
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(source, folder / source.name, ignore=ignored)
    (folder / "pyproject.toml").write_text(TYPES)
    (folder / "setup.py").write_text(SETUP.format(files=sources(folder)))
    command = (sys.executable, "setup.py", "--quiet", "build_ext", "--inplace")
    if subprocess.run(command, cwd=folder, check=False).returncode:  # noqa: S603 (our own)
        raise CompileError
    shutil.rmtree(folder / "build")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, and say how to run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="does not exist yet")
    folder: Path = parser.parse_args(arguments).folder
    if folder.exists():
        parser.error(f"{folder} exists; name a new folder, or remove it first")
    try:
        build(folder)
    except CompileError:
        sys.stderr.write("not compiled; the messages above say why\n")
        return 1
    sys.stdout.write(f"PYTHONPATH={folder.resolve()} python -m gatemesh_agent\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
