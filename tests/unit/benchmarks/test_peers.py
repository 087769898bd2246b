"""The benchmark beside other gateways, as far as nothing needs to run."""

import random

import pytest
from benchmarks.peer_answers import steps, streamed, whole
from benchmarks.peer_load import Ask, Tally
from benchmarks.peer_programs import cpu_of, family, memory_of
from benchmarks.peer_report import added_by, figures_of, ratios_of

from gatemesh_agent.gates.chain import GateChain
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.stripping import part
from gatemesh_common.messages import Outcome


@pytest.mark.parametrize("tokens", [8, 64, 400])
def test_no_gate_objects_to_the_prepared_answers(tokens: int) -> None:
    """An answer that fails is reported, and that is not what is to be measured."""
    messages = [{"role": "user", "content": "Tell me about the sea."}]
    chain = GateChain(context_of({"messages": messages, "temperature": 1}))
    for step in steps(tokens):
        chain.feed_text(step.text)
        chain.feed_steps((step,))
    assert all(each.outcome is not Outcome.FAILED for each in chain.finish("length"))


def test_a_stream_is_the_whole_answer_in_chunks() -> None:
    """With and without log probabilities; one chunk a token."""
    body = whole(5, added=True).partition(b"\r\n\r\n")[2]
    text = part(body).fields["choices"][0]["message"]["content"]
    chunks = streamed(5, added=False)
    assert len(chunks) == 5
    assert b"".join(chunks).count(b"data: {") == 5
    assert text == "".join(step.text for step in steps(5))
    assert b"top_logprobs" not in b"".join(chunks)
    assert chunks[-1].endswith(b"0\r\n\r\n")


def test_what_is_asked_names_its_answer() -> None:
    """Length and pace travel in the prompt, which every gateway passes on."""
    request = Ask("/v1/chat/completions", "bench", 8, stream=True, pace_ms=20).request(80)
    assert b"tokens=8 pace_ms=20" in request
    assert b'"stream":true' in request


def tally(latency_s: float, requests: int) -> Tally:
    """Return a run whose requests all took as long."""
    taken = [latency_s] * requests
    return Tally(taken, list(taken), chunks=requests * 2, wall_s=2.0, client_cpu_s=1.0)


def test_figures_are_of_one_run() -> None:
    """CPU time by request and by chunk, rates by the wall."""
    found = figures_of(tally(0.01, 100), cpu_s=0.5, memory_bytes=2**20)
    assert (found.requests_per_s, found.chunks_per_s) == (50, 100)
    assert (found.cpu_us_per_request, found.cpu_us_per_chunk) == (5000, 2500)
    assert (found.p50_ms, found.memory_mib, found.client_cpu_share) == (10, 1, 0.5)


def test_a_run_without_an_answer_has_figures_too() -> None:
    """A gateway that answers nothing must not end the comparison."""
    found = figures_of(Tally(wall_s=1.0), cpu_s=0.0, memory_bytes=0)
    assert (found.requests_per_s, found.p99_ms) == (0, 0)


def test_latency_is_what_is_added_to_the_direct_mean() -> None:
    """As vllm-router's own harness counts it."""
    direct = vars(figures_of(tally(0.001, 100), 0.0, 0))
    other = vars(figures_of(tally(0.003, 100), 0.2, 0))
    own = vars(figures_of(tally(0.005, 100), 0.4, 0))
    assert added_by(other, direct)["added_p99_ms"] == pytest.approx(2.0)
    ratios = ratios_of({"whole": {"direct": direct, "nginx": other, "agent": own}})["whole"]
    assert ratios["nginx"]["agent_per_core_of_it"] == pytest.approx(0.5)
    assert ratios["nginx"]["of_direct"] == pytest.approx(1.0)
    assert "direct" not in ratios


def test_a_process_is_seen_with_its_family() -> None:
    """This one has used time and memory; one that is gone has not."""
    gone = 2**22 + random.Random(1).randrange(1000)
    assert family(gone) == [gone]
    assert (cpu_of(gone), memory_of(gone)) == (0.0, 0)
