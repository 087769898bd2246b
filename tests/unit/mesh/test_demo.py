"""The demo's prompts are varied and the same in every run."""

import tomllib
from pathlib import Path

from gatemesh_mesh.demo import load_prompts, start_afresh, sum_of, with_budget_for
from gatemesh_mesh.options import DemoOptions
from gatemesh_mesh.progress import SilentProgress
from gatemesh_mesh.state import StateFolder


def test_prompts_are_varied_and_bilingual() -> None:
    """Condition A counts distinct prompts, and both languages are on the way."""
    prompts = load_prompts()
    assert len(set(prompts)) == len(prompts) >= 30
    assert sum(any("\u4e00" <= sign <= "\u9fff" for sign in prompt) for prompt in prompts) >= 5


def test_prompts_come_in_the_same_order() -> None:
    """Two runs of the demo can be compared."""
    assert load_prompts() == load_prompts()


def test_many_drills_get_a_larger_restart_budget(tmp_path: Path) -> None:
    """The usual budget would quarantine an instance in the middle of ten drills."""
    few = with_budget_for(DemoOptions(faults=("nan",) * 3), StateFolder(tmp_path))
    many = with_budget_for(DemoOptions(faults=("nan",) * 10), StateFolder(tmp_path))
    assert few.policy_file is None
    assert many.policy_file is not None
    rules = tomllib.loads(many.policy_file.read_text())["defaults"]
    assert (rules["restart"]["restarts"], rules["flap"]["enabled"]) == (10, False)


def test_a_demo_starts_afresh(tmp_path: Path) -> None:
    """What an earlier demo did does not count in the next one; its secrets stay."""
    folder = StateFolder(tmp_path / "demo")
    folder.create()
    secrets = folder.secrets()
    (folder.rabbit / "left").touch()
    start_afresh(folder, SilentProgress())
    assert not folder.rabbit.exists()
    assert folder.secrets() == secrets


def test_a_counter_is_summed_over_its_labels() -> None:
    """And no other one whose name begins alike."""
    page = '# TYPE n_total counter\nn_total{by="ids"} 3.0\nn_total{by="text"} 2.0\nn_total_x 9.0\n'
    assert sum_of(page, "n_total") == 5.0
    assert sum_of(page, "absent_total") == 0.0
