"""Healthy texts from packages: documentation in many languages and source files.

Packages come through their ordinary clients (`apt-get download`, `npm pack`); the text of a
manual page is what a reader sees, without its markup.
"""

import gzip
import html
import random
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_string
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import regex

MANUALS = {
    "cs": "Vysvětli {}.", "da": "Forklar {}.", "de": "Erkläre {}.", "el": "Εξήγησε το {}.",
    "es": "Explica {}.", "fi": "Selitä {}.", "fr": "Explique {}.", "hu": "Magyarázd el: {}.",
    "it": "Spiega {}.", "ja": "{} について説明してください。", "mk": "Објасни {}.",
    "nl": "Leg {} uit.", "pl": "Wyjaśnij {}.", "pt-br": "Explique {}.", "ro": "Explică {}.",
    "ru": "Объясни, что такое {}.", "sr": "Објасни {}.", "sv": "Förklara {}.",
    "tr": "{} nedir, açıkla.", "uk": "Поясни, що таке {}.", "vi": "Hãy giải thích {}.",
    "zh": "请解释 {}。",
}  # fmt: skip
"""Languages of translated manual pages, and how their readers ask."""
HELP_PACKAGE = "gnome-user-docs"
HELP = {
    "ca": "Explica {}.", "gl": "Explica {}.", "gu": "{} સમજાવો.", "hi": "{} समझाइए।",
    "ko": "{}에 대해 설명해 주세요.", "pa": "{} ਬਾਰੇ ਦੱਸੋ।", "sl": "Razloži {}.",
    "ta": "{} பற்றி விளக்கவும்.", "te": "{} గురించి వివరించండి.", "pt": "Explique {}.",
    "id": "Jelaskan {}.", "ja": "{} について説明してください。", "ru": "Объясни: {}.",
    "el": "Εξήγησε: {}.", "zh_CN": "请解释：{}。", "de": "Erkläre: {}.", "sv": "Förklara: {}.",
}  # fmt: skip
MODULES = (
    "lodash", "express", "chalk", "axios", "commander", "vue", "rxjs", "moment", "webpack",
    "three", "d3", "jquery", "eslint", "prettier", "async", "uuid", "yargs", "mocha", "socket.io",
    "handlebars", "bootstrap", "highlight.js", "marked", "leaflet", "chart.js",
)  # fmt: skip
LONGEST_PASSAGE = 2400
SHORTEST_PASSAGE = 160
LONGEST_SOURCE = 8000
COMPLETE = regex.compile(r"[.!?…。！？।։؟][\"'”’»)\]]*$")
MACRO = regex.compile(r"[.']\s*([A-Za-z]{1,3})\b\s*(.*)")
BREAKS = {"SH", "PP", "P", "LP", "TP", "IP", "HP", "sp", "RS", "RE", "SS", "br"}
UNREADABLE = ("\n.Dd", "\n.TS", "\n.de ")
"""Other macro packages, tables and pages with macros of their own."""
VERBATIM = {"nf": True, "EX": True, "fi": False, "EE": False}
FONTS = {"B", "I", "BR", "RB", "BI", "IB", "IR", "RI", "SM", "SB"}
ROFF = (
    (regex.compile(r'\\".*|\\#.*'), ""),
    (regex.compile(r"\\f(?:\[[^\]]*\]|\(..|.)|\\s[-+]?\d|\\[&|^/,:)c%]|\\m\[[^\]]*\]"), ""),
    (regex.compile(r"\\[~ 0]"), " "),
    (regex.compile(r"\\-|\\\(hy|\\\[hy\]|\\\(mi"), "-"),
    (regex.compile(r"\\(?:\(|\[)(?:aq|cq|oq)\]?|\\'"), "'"),
    (regex.compile(r"\\(?:\(|\[)(?:dq|lq|rq)\]?|\\\*\([lr]q|\\\*[LR]\([lr]q|\\\*\(\W"), '"'),
    (regex.compile(r"\\(?:\(|\[)em\]?"), "—"),
    (regex.compile(r"\\(?:\(|\[)en\]?"), "–"),
    (regex.compile(r"\\(?:\(|\[)bu\]?"), "•"),
    (regex.compile(r"\\(?:\(|\[)co\]?"), "©"),
    (regex.compile(r"\\(?:\(|\[)(?:ti|ha)\]?"), "~"),
    (regex.compile(r"\\(?:\(|\[)Fo\]?"), "«"),
    (regex.compile(r"\\(?:\(|\[)Fc\]?"), "»"),
    (regex.compile(r"\\(?:\(|\[)rs\]?|\\e|\\\\"), "\x00"),
)  # fmt: skip
CODE_POINT = regex.compile(r"\\\[u([0-9A-F]{4,5})\]")


@dataclass(frozen=True, slots=True)
class CleanText:
    """A healthy text as if it were an answer."""

    group: str
    """Where it comes from: a language, or a kind of source."""
    name: str
    prompt: str
    text: str
    finish_reason: str = "stop"


def documentation(folder: Path, count: int, *, seed: int) -> list[CleanText]:
    """Return passages of documentation, evenly from every language."""
    groups = {lang: list(manual_passages(folder, lang)) for lang in MANUALS}
    for lang in HELP:
        groups.setdefault(lang, []).extend(help_passages(folder, lang))
    groups["en"] = list(english_passages(folder))
    return evenly({lang: found for lang, found in groups.items() if found}, count, seed)


def evenly(groups: dict[str, list[CleanText]], count: int, seed: int) -> list[CleanText]:
    """Return some texts of every group, the same number where it has as many."""
    rng = random.Random(seed)
    for found in groups.values():
        rng.shuffle(found)
    taken: list[CleanText] = []
    for number, found in enumerate(sorted(groups.values(), key=len)):
        share = (count - len(taken)) // (len(groups) - number)
        taken += found[:share]
    return taken


def fetched_package(folder: Path, package: str) -> Path | None:
    """Return where a Debian package lies unpacked; None where there is no such package."""
    target = folder / package
    if not target.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        if not run(folder, "apt-get", "download", "-qq", package):
            return None
        for archive in folder.glob(f"{package}_*.deb"):
            run(folder, "dpkg-deb", "-x", archive.name, package)
            archive.unlink()
    return target if target.is_dir() else None


def run(folder: Path, *command: str) -> bool:
    """Run a command in a folder and tell whether it went well."""
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def manual_passages(folder: Path, lang: str) -> Iterator[CleanText]:
    """Yield passages of the manual pages in one language."""
    package = fetched_package(folder, f"manpages-{lang}")
    pages = sorted(package.rglob("*.gz")) if package else []
    for page in pages:
        if "/man/" not in str(page) or page.is_symlink():
            continue
        name = page.name.split(".")[0]
        for passage in cut_passages(roff_paragraphs(unzipped(page))):
            yield clean(lang, str(page.relative_to(folder)), MANUALS[lang].format(name), passage)


def unzipped(page: Path) -> str:
    """Return the text of a gzipped page; empty where it is not UTF-8."""
    try:
        return gzip.decompress(page.read_bytes()).decode()
    except (OSError, EOFError, UnicodeDecodeError):
        return ""


def clean(group: str, name: str, prompt: str, text: str) -> CleanText:
    """Name a passage; one that does not end with a full sentence was cut."""
    complete = COMPLETE.search(text) is not None
    return CleanText(group, name, prompt, text, "stop" if complete else "length")


def cut_passages(paragraphs: Iterator[str]) -> Iterator[str]:
    """Join paragraphs to passages of the length of an answer."""
    held: list[str] = []
    size = 0
    for paragraph in paragraphs:
        if size + len(paragraph) > LONGEST_PASSAGE or not paragraph:
            if size >= SHORTEST_PASSAGE:
                yield "\n\n".join(held)
            held, size = [], 0
        if paragraph and len(paragraph) <= LONGEST_PASSAGE:
            held.append(paragraph)
            size += len(paragraph)
    if size >= SHORTEST_PASSAGE:
        yield "\n\n".join(held)


def roff_paragraphs(page: str) -> Iterator[str]:
    """Yield the paragraphs of a manual page, and an empty one where a section begins."""
    if any(macro in page for macro in UNREADABLE):
        return
    lines: list[str] = []
    verbatim = False
    for line in page[max(page.find("\n.SH"), 0) :].split("\n"):
        macro = MACRO.match(line)
        name = macro.group(1) if macro else ""
        if name in VERBATIM:
            verbatim = VERBATIM[name]
        elif name in BREAKS or not line.strip():
            yield from paragraph(lines, verbatim=verbatim)
            lines = []
            yield from ("",) * (name == "SH")
        else:
            lines += visible_line(line, name, macro.group(2) if macro else "")
    yield from paragraph(lines, verbatim=verbatim)


def paragraph(lines: list[str], *, verbatim: bool) -> Iterator[str]:
    """Yield the lines of a paragraph joined as a reader sees them, if there are any."""
    if lines:
        yield ("\n" if verbatim else " ").join(lines).strip()


def visible_line(line: str, macro: str, arguments: str) -> list[str]:
    """Return what a reader sees of a line: text, or the arguments of a change of fonts."""
    if macro in FONTS:
        return [plain(arguments.replace('"', "") if len(macro) == 1 else glued(arguments))]
    return [] if line.startswith((".", "'")) else [plain(line)]


def glued(arguments: str) -> str:
    """Join the arguments of a macro that changes fonts between them."""
    parts = regex.findall(r'"([^"]*)"|(\S+)', arguments)
    return "".join(quoted or bare for quoted, bare in parts)


def plain(line: str) -> str:
    """Take the markup out of a line."""
    for pattern, sign in ROFF:
        line = pattern.sub(sign, line)
    line = CODE_POINT.sub(lambda hit: chr(int(hit.group(1), 16)), line)
    return regex.sub(r"\\\[\w+\]|\\\(..|\\.", "", line).replace("\x00", "\\")


def help_passages(folder: Path, lang: str) -> Iterator[CleanText]:
    """Yield passages of the desktop's help in one language."""
    package = fetched_package(folder, HELP_PACKAGE)
    pages = sorted((package / "usr/share/help" / lang).rglob("*.page")) if package else []
    for page in pages:
        try:
            tree = ElementTree.parse(page)  # noqa: S314 a page of the distribution itself
        except (ElementTree.ParseError, OSError):
            continue
        title = ""
        found: list[str] = []
        for element in tree.iter():
            tag = element.tag.rpartition("}")[2]
            text = " ".join("".join(element.itertext()).split())
            if tag == "title" and text:
                title = title or text
                found.append("")
            elif tag in {"p"} and text:
                found.append(text)
        if is_translated(title, lang):
            name = str(page.relative_to(folder))
            for passage in cut_passages(iter(found)):
                yield clean(lang, name, HELP[lang].format(title), passage)


def is_translated(title: str, lang: str) -> bool:
    """Return True for a title that is not English, as far as its letters show."""
    own_script = lang in {"gu", "hi", "ko", "pa", "ta", "te", "ja", "ru", "el", "zh_CN"}
    return bool(title) and (not own_script or not title.isascii())


def english_passages(folder: Path) -> Iterator[CleanText]:
    """Yield passages of the readmes of packages."""
    for package in sorted(metadata.distributions(), key=lambda one: one.metadata["Name"]):
        readme = message_from_string(package.read_text("METADATA") or "").get_payload()
        name = package.metadata["Name"]
        if isinstance(readme, str):
            for passage in cut_passages(iter(blocks_of(readme))):
                yield clean("en", f"readme of {name}", f"How do I use {name}?", passage)
    for module in MODULES:
        for path in modules_files(folder, module):
            if path.suffix == ".md":
                yield from module_passages(folder, module, path)


def module_passages(folder: Path, module: str, page: Path) -> Iterator[CleanText]:
    """Yield passages of one page of an npm package."""
    name = str(page.relative_to(folder))
    for passage in cut_passages(iter(blocks_of(page.read_text("utf-8", "replace")))):
        yield clean("en", name, f"How do I use {module}?", passage)


def blocks_of(readme: str) -> list[str]:
    """Return the paragraphs of a Markdown text; a heading begins a new passage."""
    found: list[str] = []
    fenced = False
    for block in readme.replace("\r\n", "\n").split("\n\n"):
        if block.startswith("#") and not fenced:
            found.append("")
        if fenced:
            found[-1] += "\n\n" + block
        elif block.strip():
            found.append(html.unescape(block) if "```" not in block else block)
        fenced ^= block.count("```") % 2 == 1
    return found


def modules_files(folder: Path, module: str) -> list[Path]:
    """Return the files of an npm package."""
    target = folder / "npm" / module
    if not target.is_dir():
        target.mkdir(parents=True)
        run(target, "npm", "pack", "--silent", module)
        for archive in target.glob("*.tgz"):
            with tarfile.open(archive) as packed:
                packed.extractall(target, filter="data")
            archive.unlink()
    return sorted(path for path in target.rglob("*") if path.is_file())


def sources(folder: Path, count: int, *, seed: int) -> list[CleanText]:
    """Return source files of the standard library and of npm packages, half of each."""
    library = Path(sysconfig.get_paths()["stdlib"])
    python = [
        path
        for path in sorted(library.rglob("*.py"))
        if "site-packages" not in path.parts and "bad" not in path.name
    ]
    scripts = [
        path
        for module in MODULES
        for path in modules_files(folder, module)
        if path.suffix in {".js", ".mjs", ".ts", ".css", ".json", ".cjs"}
    ]
    groups = {
        "python": [source("python", path, library) for path in python],
        "node": [source("node", path, folder) for path in scripts],
    }
    sound = {name: [one for one in found if one.text.strip()] for name, found in groups.items()}
    return evenly(sound, count, seed)


def source(group: str, path: Path, base: Path) -> CleanText:
    """Return a file as an answer, cut like one that reached its limit."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        text = ""
    name = str(path.relative_to(base))
    reason = "stop" if len(text) <= LONGEST_SOURCE else "length"
    return CleanText(group, name, f"Show me the source of {name}", text[:LONGEST_SOURCE], reason)


if __name__ == "__main__":
    texts = documentation(Path(sys.argv[1]), 100, seed=1)
    print(len(texts), {one.group for one in texts})
