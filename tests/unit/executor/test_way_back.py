"""The configured command that puts the former model version in place."""

import sys
from pathlib import Path

import pytest

from gatemesh_executor.backends.base import RollBackFailedError, RollBackNotOfferedError
from gatemesh_executor.backends.way_back import run_way_back
from gatemesh_executor.instances import Instance, RollBack

WRITE = (
    "import os, sys; "
    "open('got', 'a').write(repr(sys.argv[1:]) + os.environ['GATEMESH_INSTANCE_ID'])"
)


def engine(folder: Path, program: str | None, *words: str, timeout_s: float = 30.0) -> Instance:
    """Return an instance whose way back is a Python program."""
    way = None
    if program is not None:
        command = (sys.executable, "-c", program, *words)
        way = RollBack(command=command, folder=folder, timeout_s=timeout_s)
    return Instance(
        instance_id="group/engine-0",
        base_url="http://127.0.0.1:1",
        program="engine-0",
        model_version="v2",
        roll_back=way,
    )


async def test_the_command_is_told_what_it_is_about(tmp_path: Path) -> None:
    """The instance and the version to leave; no variable of ours but those two."""
    words = ("{instance_id}", "from-{model_version}")
    variables = {"PATH": "/usr/bin:/bin", "GATEMESH_AMQP_URL": "amqp://u:secret@b/"}
    await run_way_back(engine(tmp_path, WRITE, *words), variables)
    assert (tmp_path / "got").read_text() == "['group/engine-0', 'from-v2']group/engine-0"
    show = "import os; print(sorted(os.environ))"
    await run_way_back(engine(tmp_path, show), variables)
    said = (tmp_path / ".group_engine-0.roll_back.log").read_text()
    assert "GATEMESH_MODEL_VERSION" in said
    assert "AMQP" not in said


async def test_none_is_told_with_the_way_out(tmp_path: Path) -> None:
    """The report names the key that is missing."""
    with pytest.raises(RollBackNotOfferedError, match=r"has no roll_back.command in the instances"):
        await run_way_back(engine(tmp_path, None))


@pytest.mark.parametrize(
    ("program", "timeout_s", "told"),
    [
        ("print('token=secret'); raise SystemExit(3)", 30.0, r"ended with code 3; see .*log"),
        ("import time; time.sleep(600)", 0.2, r"not done in 0.2 s"),
    ],
)
async def test_a_failure_names_code_and_log(
    tmp_path: Path, program: str, timeout_s: float, told: str
) -> None:
    """And quotes nothing of it."""
    with pytest.raises(RollBackFailedError, match=told) as caught:
        await run_way_back(engine(tmp_path, program, timeout_s=timeout_s))
    assert "secret" not in str(caught.value)
