"""How what was added to a request is taken out of its answer again, by route. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from gatemesh_agent import responses_stripping, stripping
from gatemesh_agent.requests import Route
from gatemesh_agent.stripping import LogprobsCut, Parted


@dataclass(frozen=True, slots=True)
class Stripper:
    """Takes log probabilities out of the answers of one route."""

    part: Callable[[bytes, int], Parted]
    """Takes them out of JSON that is held whole; a ValueError says that it is none."""
    open_cut: Callable[[], LogprobsCut]
    """Takes them out of an answer that is too long to be held."""
    repeats: bool = False
    """True where the events at the end repeat all that came before, however long."""


PLAIN = Stripper(stripping.part, LogprobsCut)
RESPONSES = Stripper(responses_stripping.part, responses_stripping.ListsCut, repeats=True)


def stripper_of(route: Route) -> Stripper:
    """Return how the answers of a route are cleaned."""
    return RESPONSES if route is Route.RESPONSES else PLAIN
