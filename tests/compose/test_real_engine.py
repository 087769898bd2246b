"""The profile `cpu` for real: one vLLM in a container answers, dies, and is brought back."""

import os
import subprocess
import uuid
from collections.abc import Iterator

import pytest
from tests.compose.composed import BUILD_DEADLINE_S, REPOSITORY, Composed, until

from gatemesh_mesh.real_engine import MODEL_NAME, layout_of
from gatemesh_mesh.state import state_folder
from gatemesh_mesh.suite import COMPOSE_VARIABLE

MODEL = layout_of(state_folder(os.environ, REPOSITORY)).model
MODELS_IN_IT = "/var/lib/gatemesh/models"
pytestmark = [
    pytest.mark.compose,
    pytest.mark.real_engine,
    pytest.mark.timeout(3_600),
    pytest.mark.skipif(
        os.environ.get(COMPOSE_VARIABLE) != "1",
        reason="needs a Docker engine; run ./mesh test --compose",
    ),
    pytest.mark.skipif(not MODEL.is_dir(), reason=f"no model in {MODEL}; ./mesh demo installs it"),
]

LOADED_DEADLINE_S = 900.0
"""A start takes half a minute on a quiet machine, and minutes on one that builds beside it."""
KILLED = """
import os, pathlib, signal
for stat in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    if b"vllm.entrypoints" in stat.read_bytes():
        os.kill(int(stat.parent.name), signal.SIGKILL)
"""


def put_model(stack: Composed) -> None:
    """Copy the packaged model into the volume of models, as docs/compose.md tells to."""
    volume = f"{stack.project}_vllm_models:{MODELS_IN_IT}"
    stack.compose("create", "vllm-cpu")
    words = f"cp -r /from/{MODEL_NAME} {MODELS_IN_IT}/ && chown -R gatemesh {MODELS_IN_IT}"
    command = ["docker", "run", "--rm", "--user", "0", "--entrypoint", "sh", "-v", volume]
    command += ["-v", f"{MODEL.parent}:/from:ro", "gatemesh/vllm_cpu:local", "-c", words]
    subprocess.run(command, check=True, timeout=300)


@pytest.fixture(scope="module")
def stack() -> Iterator[Composed]:
    """Build and start the profile once; nothing of it is left afterwards but the images."""
    stack = Composed(
        f"gatemesh-test-{uuid.uuid4().hex[:8]}",
        options=("--env-file", "deploy/docker/vllm.env", "--profile", "cpu"),
        settings={"GATEMESH_VLLM_MODEL": f"{MODELS_IN_IT}/{MODEL_NAME}"},
    )
    try:
        stack.compose("build", deadline_s=2 * BUILD_DEADLINE_S)
        put_model(stack)
        stack.up()
        until(lambda: is_serving(stack), "the real engine serves", LOADED_DEADLINE_S)
        yield stack
        # Shown by pytest when a test has failed.
        print(stack.compose("logs", "--no-color", "--tail", "60"))  # noqa: T201
    finally:
        stack.compose("down", "--volumes", "--remove-orphans")


def is_serving(stack: Composed) -> bool:
    """Tell whether the engine was let into rotation."""
    return stack.psql("SELECT instance_id FROM instance_health_v1 WHERE in_rotation") == ["vllm-0"]


def test_it_answers_through_the_agent(stack: Composed) -> None:
    """A real answer, which the gates judged clean, from an engine that the probes let in."""
    model = f"{MODELS_IN_IT}/{MODEL_NAME}"
    status, answer = stack.ask("Name a fruit.", model=model, max_tokens=32)
    assert status == 200
    assert answer["choices"][0]["message"]["content"].strip()
    assert stack.psql("SELECT outcome FROM verdicts_v1 WHERE check_level = 'L5'")[-1] == "passed"
    # Loading its weights was held against it by nobody.
    assert stack.psql("SELECT count(*) FROM incidents_v1") == ["0"]


def test_its_image_lists_what_it_holds(stack: Composed) -> None:
    """Its own environment, beside that of supervisord."""
    listed = stack.execute("vllm-cpu", "cat", "/opt/vllm/sbom.cdx.json")
    assert '"vllm-cpu"' in listed


def test_a_killed_engine_is_started_and_proven_anew(stack: Composed) -> None:
    """By the executor, over the network; supervisord starts nothing by itself."""
    life = stack.life_of("vllm-0")
    stack.python("vllm-cpu", KILLED)
    until(lambda: not is_serving(stack), "its death is seen")
    until(lambda: is_serving(stack), "it is back", LOADED_DEADLINE_S)
    assert stack.life_of("vllm-0") != life
    [row] = stack.psql("SELECT condition, status FROM incidents_v1")
    assert row == "exit|resolved"
