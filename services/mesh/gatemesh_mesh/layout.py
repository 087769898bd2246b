"""What the repository is held to: mirrored tests, small pieces, no host of one place."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

MEDIAN_LINES, USUAL_LINES, MOST_LINES = 8, 25, 50
USUAL_SHARE = 0.9
FILE_LINES = 500
NESTING = 3

SOURCE_FOLDERS = ("libs", "services")
CODE_FOLDERS = (*SOURCE_FOLDERS, "tests", "migrations", "benchmarks", "examples", "deploy")
EXEMPT = {"__init__.py", "__main__.py"}
"""Packages and composition roots have no unit test of their own."""

UNTOLD = {"build", "dist", "node_modules", "__pycache__"}
TOLD = {".ci", ".github"}
"""Of the hidden folders, those that people write in."""

TEXT_SUFFIXES = {"", ".md", ".py", ".toml", ".txt", ".yaml", ".yml", ".sh", ".ini", ".cfg"}

HOSTS = re.compile(
    r"\b(pypi\.org|pythonhosted\.org|huggingface\.co|hf-mirror\.com|docker\.io|ghcr\.io|quay\.io"
    r"|deb\.debian\.org|security\.debian\.org|npmjs\.org|proxy\.golang\.org|crates\.io"
    r"|modelscope\.cn|tuna\.tsinghua\.edu\.cn|aliyun\.com)\b"
)
MACHINE_PATHS = re.compile(r"(?<![\w./~])/(work|root|home)/\w")

NESTING_NODES = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class FunctionSize:
    """How large one function is; its docstring does not count."""

    name: str
    line: int
    body_lines: int
    nesting: int


def python_files(repository: Path, folders: Iterable[str] = CODE_FOLDERS) -> list[Path]:
    """Return our Python files, relative to the repository."""
    found = (path for name in folders for path in (repository / name).rglob("*.py"))
    return sorted(path.relative_to(repository) for path in found if not UNTOLD & set(path.parts))


def expected_tests(source: Path) -> tuple[Path, ...]:
    """Return where the unit test of a source may be: its path mirrored, or flat in its service."""
    if source.parts[0] not in SOURCE_FOLDERS or source.name in EXEMPT:
        return ()
    _, service, _, *inner = source.parts
    folder = Path("tests", "unit", service)
    name = f"test_{source.name}"
    return tuple(dict.fromkeys((folder.joinpath(*inner[:-1], name), folder / name)))


def untested(sources: Iterable[Path], existing: set[Path]) -> list[Path]:
    """Return the sources that have no unit test file."""
    return [
        source
        for source in sources
        if (wanted := expected_tests(source)) and existing.isdisjoint(wanted)
    ]


def function_sizes(text: str) -> list[FunctionSize]:
    """Return the size of every function in a file."""
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTIONS))
    return [
        FunctionSize(node.name, node.lineno, _body_lines(node), _nesting(node.body))
        for node in functions
    ]


def _body_lines(function: Function) -> int:
    body = function.body
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def _nesting(body: Iterable[ast.stmt]) -> int:
    return max(map(_depth, body), default=0)


def _depth(statement: ast.stmt) -> int:
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return 0
    own = 1 if isinstance(statement, (*NESTING_NODES, ast.Match)) else 0
    return own + max(map(_nesting, _blocks(statement)), default=0)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None) or []
        # An `elif` is a lone `if` in the else branch: no deeper than the first.
        if name == "orelse" and isinstance(statement, ast.If) and _is_lone_if(block):
            yield from _blocks(block[0])
        else:
            yield block
    yield from (
        part.body for name in ("handlers", "cases") for part in getattr(statement, name, ())
    )


def _is_lone_if(block: list[ast.stmt]) -> bool:
    return len(block) == 1 and isinstance(block[0], ast.If)


def size_faults(sizes: Iterable[FunctionSize]) -> list[str]:
    """Name the functions that are too long or too deep."""
    return [
        f"line {size.line}: {size.name}: {size.body_lines} lines, nesting {size.nesting}"
        for size in sizes
        if size.body_lines > MOST_LINES or size.nesting > NESTING
    ]


def median_lines(sizes: Iterable[FunctionSize]) -> float:
    """Return the median length of a function body, in lines."""
    return median(size.body_lines for size in sizes)


def usual_share(sizes: Iterable[FunctionSize]) -> float:
    """Return the share of functions that are under the usual length."""
    lines = [size.body_lines for size in sizes]
    return sum(count < USUAL_LINES for count in lines) / len(lines)


def named_places(text: str) -> list[str]:
    """Return the registry hosts and paths of one machine that a text names."""
    return [match.group() for match in (*HOSTS.finditer(text), *MACHINE_PATHS.finditer(text))]


def text_files(repository: Path) -> list[Path]:
    """Return the files that people wrote, relative to the repository."""
    return sorted(
        path.relative_to(repository)
        for path in repository.rglob("*")
        if path.suffix in TEXT_SUFFIXES and not _is_untold(path, repository) and path.is_file()
    )


def _is_untold(path: Path, repository: Path) -> bool:
    parts = path.relative_to(repository).parts
    hidden = {part for part in parts[:-1] if part.startswith(".")}
    return bool(UNTOLD & set(parts)) or not hidden <= TOLD
