"""What the doctor is told of a policy file."""

from pathlib import Path

from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.policy_check import check_policy

REPOSITORY = Path(__file__).resolve().parents[3]


def test_a_valid_file_has_a_version(tmp_path: Path) -> None:
    """The same that decisions name."""
    file = tmp_path / "policy.toml"
    file.write_text("")
    assert check_policy(file) == (Policy().version, "")


def test_a_fault_is_told_with_its_key(tmp_path: Path) -> None:
    """And an absent file with its name."""
    file = tmp_path / "policy.toml"
    file.write_text("[defaults.score]\nhalf_life_s = -1\n")
    version, fault = check_policy(file)
    assert version == ""
    assert "half_life_s" in fault
    assert "none.toml" in check_policy(tmp_path / "none.toml")[1]


def test_the_doctor_finds_it() -> None:
    """By the entry point that it looks for."""
    project = (REPOSITORY / "pyproject.toml").read_text()
    assert 'policy = "gatemesh_health_manager.policy_check:check_policy"' in project
