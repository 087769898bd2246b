"""What every table of the policy file has in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Seconds = Annotated[float, Field(gt=0, le=86_400)]
LONGEST_STREAK = 10
"""Longest streak that a rule may ask for; what is stored of one is bounded by it."""


class Section(BaseModel):
    """A table of the policy file; an unknown key is an error, since it is a typing mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")
