"""The stages of the Dockerfile, as far as tests ask about them."""

import re
from dataclasses import dataclass, field
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "deploy" / "docker" / "Dockerfile"


@dataclass
class Stage:
    """One stage: what it begins with, and its own instructions in order."""

    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def last(self, instruction: str) -> str | None:
        """Return the arguments of the last such instruction; None without one."""
        found = self.all(instruction)
        return found[-1] if found else None

    def all(self, instruction: str) -> list[str]:
        """Return the arguments of each such instruction."""
        return [words for name, words in self.instructions if name == instruction]


def read_stages(text: str) -> dict[str, Stage]:
    """Return the named stages of a Dockerfile."""
    whole = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^#.*\n", "", text))
    stages: dict[str, Stage] = {}
    for line in filter(None, whole.splitlines()):
        name, words = line.split(" ", 1)
        if name == "FROM":
            base, _, stage = words.split(" ")
            current = stages[stage] = Stage(base)
        else:
            current.instructions.append((name, words))
    return stages


STAGES = read_stages(FILE.read_text())


def inherited(target: str, instruction: str) -> str | None:
    """Return the arguments that hold for a target, its own or those of what it begins with."""
    stage = STAGES.get(target)
    if stage is None:
        return None
    return stage.last(instruction) or inherited(stage.base, instruction)


def lineage(target: str) -> list[Stage]:
    """Return a stage and all that it begins with, as far as they are ours."""
    stage = STAGES.get(target)
    return [stage, *lineage(stage.base)] if stage else []


def shipped(target: str) -> list[str]:
    """Return the stages from which a target takes a whole environment."""
    taken = [words for name, words in STAGES[target].instructions if name == "COPY"]
    return re.findall(r"--from=(\S+) /opt/(?:gatemesh|vllm) ", "\n".join(taken))
