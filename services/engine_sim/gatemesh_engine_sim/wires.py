"""Which wire writes the answers of which route. Pure."""

from collections.abc import Callable, Mapping

from gatemesh_engine_sim.intake import Route
from gatemesh_engine_sim.messages_wire import MessagesWire
from gatemesh_engine_sim.responses_wire import ResponsesWire
from gatemesh_engine_sim.wire import ChatWire, CompletionWire, Reply, Wire

WIRES: Mapping[Route, Callable[[Reply], Wire]] = {
    Route.CHAT: ChatWire,
    Route.COMPLETIONS: CompletionWire,
    Route.RESPONSES: ResponsesWire,
    Route.MESSAGES: MessagesWire,
}


def wire_for(reply: Reply) -> Wire:
    """The writer of the route that was asked."""
    return WIRES[reply.asked.route](reply)
