"""Playbooks as data: the ordered steps that answer a condition, and which orders there can be."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from gatemesh_health_manager.policy_section import Section

Step = Literal["shift", "drain", "eject", "confirm", "repair", "restart", "replace", "stop", "tell"]
Steps = tuple[Step, ...]
TAKEN = frozenset({"repair", "roll_back"})
"""Names of what operators ask for that no file can say in steps."""


def be_free(name: str) -> str:
    """Refuse the names that mean something else in incidents."""
    if name in TAKEN:
        raise ValueError(f"{name} is taken: operators ask for it; choose another name")
    return name


PlaybookName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$"), AfterValidator(be_free)]

ORDERS = re.compile(r"tell|(shift )?(drain|eject( confirm)?( repair)?) (restart|replace|stop)")
"""What the state machine can carry out."""
POSSIBLE = (
    'possible: "tell" alone; or, with or without "shift" before it, "drain", or "eject" with or '
    'without "confirm" and then "repair" after it; and at the end "restart", "replace" or "stop"'
)
KEEP_WEIGHTS: dict[Step, Step] = {"replace": "restart"}


@dataclass(frozen=True)
class Plan:
    """A playbook by its name, with its steps."""

    name: str
    steps: Steps

    @property
    def only_tells(self) -> bool:
        """True where nothing is done but to tell."""
        return self.steps == ("tell",)

    def without_new_weights(self) -> "Plan":
        """Return the plan that trusts the weights."""
        if "replace" not in self.steps:
            return self
        return Plan("restart", tuple(KEEP_WEIGHTS.get(step, step) for step in self.steps))


class PlaybookRule(Section):
    """The steps of one playbook."""

    steps: Steps

    @field_validator("steps")
    @classmethod
    def be_possible(cls, value: Steps) -> Steps:
        """Refuse an order that the state machine cannot carry out."""
        if not ORDERS.fullmatch(" ".join(value)):
            said = ", ".join(value) or "nothing"
            raise ValueError(f"{said}: cannot be carried out in this order; {POSSIBLE}")
        return value


SHIPPED: dict[str, PlaybookRule] = {
    "restart": PlaybookRule(steps=("drain", "restart")),
    "confirm": PlaybookRule(steps=("eject", "confirm", "restart")),
    "shift": PlaybookRule(steps=("shift", "drain", "restart")),
    "replace": PlaybookRule(steps=("eject", "replace")),
    "stop": PlaybookRule(steps=("drain", "stop")),
    "tell": PlaybookRule(steps=("tell",)),
}
"""Playbooks that are there without being named in the file."""

RESTART = Plan("restart", ("drain", "restart"))
STOP = Plan("stop", ("drain", "stop"))
REPAIR = Plan("repair", ("eject", "repair", "restart"))
REPLACE = Plan("replace", ("eject", "replace"))
ROLL_BACK = Plan("roll_back", ("eject", "restart"))
"""What operators ask for; the file does not change these."""
ASKED: dict[str, Steps] = {
    plan.name: plan.steps for plan in (RESTART, STOP, REPAIR, REPLACE, ROLL_BACK)
}
BEGINNINGS: dict[str, Steps] = {
    "B": ("eject", "confirm"),
    "C": ("shift", "drain"),
    "D": ("eject",),
}


def steps_before_playbooks(condition: str, playbook: str) -> Steps:
    """Return the steps of an incident that was stored before steps were."""
    if condition in BEGINNINGS and playbook in ("restart", "replace"):
        end: Step = "replace" if playbook == "replace" else "restart"
        return (*BEGINNINGS[condition], end)
    return ASKED.get(playbook, RESTART.steps)
