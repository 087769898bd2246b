"""The protocol of gates, kept by our own and by those plugged in."""

from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.l1_text import TextGate
from gatemesh_agent.gates.l3_distribution import DistributionGate
from gatemesh_common.gates import Ending, Gate, TokenStep
from gatemesh_common.messages import CheckLevel, Outcome


def test_our_own_gates_keep_it() -> None:
    """What a plug-in may rely on is what we rely on."""
    context = context_of({"messages": []})
    gates: list[Gate] = [TextGate(context), DistributionGate(context)]
    for gate in gates:
        gate.feed_text("The tide turns.")
        gate.feed_steps([TokenStep("x", -0.1, (-0.1, -3.0))])
    outcomes = [gate.finish(Ending("stop")) for gate in gates]
    assert [found.outcome for found in outcomes] == [Outcome.PASSED] * 2
    assert [found.gate for found in outcomes] == [CheckLevel.L1, CheckLevel.L3]
