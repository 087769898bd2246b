"""Real engines get a core and a drill file each; without them the demo says why it simulates."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gatemesh_mesh import demo_engines
from gatemesh_mesh.real_engine import EngineLayout, RealEngineUnavailableError
from gatemesh_mesh.state import StateFolder


class Notes:
    """Keeps what a person would have been told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Keep the title."""
        self.told.append(title)
        yield

    def note(self, text: str) -> None:
        """Keep the text."""
        self.told.append(text)


def test_each_real_engine_follows_its_own_drill_file(tmp_path: Path) -> None:
    """A drill on one instance leaves the other alone."""
    make = demo_engines.real_engines(EngineLayout(tmp_path))
    first, second = make(StateFolder(tmp_path), [20_001, 20_002])
    files = [one.program.environment["GATEMESH_CHAOS_FILE"] for one in (first, second)]
    assert len(set(files)) == 2
    assert first.base_url.endswith(":20001")
    assert first.program.argv[first.program.argv.index("--port") + 1] == "20001"


def test_real_engines_send_exact_figures_to_the_agent(tmp_path: Path) -> None:
    """All to one socket in the state folder, unless its path is too long for one."""
    make = demo_engines.real_engines(EngineLayout(tmp_path))
    found = make(StateFolder(tmp_path), [20_001, 20_002])
    outs = {one.program.environment["GATEMESH_PLUGIN_OUT"] for one in found}
    assert outs == {f"unix:{tmp_path}/figures.sock"}
    deep = StateFolder(tmp_path / ("x" * demo_engines.LONGEST_SOCKET_BYTES))
    [engine] = make(deep, [20_001])
    assert "GATEMESH_PLUGIN_OUT" not in engine.program.environment


def test_a_machine_without_the_real_engine_is_told_why(tmp_path: Path) -> None:
    """The demo goes on simulated and never in silence."""

    def refuse(*_: object) -> EngineLayout:
        raise RealEngineUnavailableError("no AVX2 here", "use another machine")

    notes = Notes()
    make, model = demo_engines.choose_engines(
        StateFolder(tmp_path), notes, simulated=False, install=refuse
    )
    assert model == demo_engines.SIMULATED_MODEL
    assert [one.instance_id for one in make(StateFolder(tmp_path), [20_001])] == ["engine-0"]
    assert "no AVX2 here" in notes.told[0]
