"""The probe suite and its rules."""

from pathlib import Path

import pytest

from gatemesh_agent.suite import Answer, ModelRule, Prompt, Suite, conclude, load_suite
from gatemesh_common.errors import SettingsError

PROMPTS = tuple(Prompt(id=name, text=name, expect=name) for name in ("a", "b", "c", "d"))
SUITE = Suite(
    version="1",
    prompts=PROMPTS,
    models=(
        ModelRule(pattern="smol", required=("a", "b"), min_pass_share=0.5),
        ModelRule(pattern="", min_pass_share=0.75),
    ),
)


def answers(matched: str, fault: str = "") -> tuple[Answer, ...]:
    """Return answers of which those named match, and one may be at fault."""
    return tuple(
        Answer(each.id, each.id in matched, "empty" if each.id == fault else None)
        for each in PROMPTS
    )


@pytest.mark.parametrize(
    ("model", "given", "passed", "failed"),
    [
        pytest.param("SmolLM2", answers("ab"), True, [], id="required-right"),
        pytest.param("SmolLM2", answers("acd"), False, ["b"], id="required-wrong"),
        pytest.param("SmolLM2", answers("abcd", "d"), False, ["d"], id="at-fault-though-right"),
        pytest.param("other", answers("abc"), True, [], id="share-at-limit"),
        pytest.param("other", answers("ab"), False, ["c", "d"], id="share-below"),
        pytest.param("other", (), False, [], id="nothing-asked"),
    ],
)
def test_when_a_suite_passes(
    model: str,
    given: tuple[Answer, ...],
    passed: bool,  # noqa: FBT001
    failed: list[str],
) -> None:
    """No answer at fault, every required one right, enough right overall."""
    result = conclude(SUITE, model, given)
    assert result.passed is passed
    assert result.details["failed"] == failed
    assert result.details["suite_version"] == "1"


def test_a_model_without_a_rule_only_has_to_be_clean() -> None:
    """What it should know is not known."""
    suite = Suite(version="1", prompts=PROMPTS, models=(ModelRule(pattern="smol"),))
    assert conclude(suite, "other", answers("")).passed
    assert not conclude(suite, "other", answers("", "a")).passed


def test_answers_match_without_regard_to_case_and_lines() -> None:
    """Tolerance is part of the pattern, case is not."""
    prompt = Prompt(id="x", text="x", expect=r"hello.*world")
    assert prompt.matches("Sure!\nHello\nWORLD.")
    assert not prompt.matches("goodbye")


def test_a_rule_cannot_require_what_is_not_asked() -> None:
    """A typing error would otherwise never pass or never fail."""
    with pytest.raises(ValueError, match="unknown prompts"):
        Suite(version="1", prompts=PROMPTS, models=(ModelRule(pattern="", required=("z",)),))


def test_the_own_suite_covers_what_the_diagnosis_asks() -> None:
    """English and Chinese, arithmetic, translation, a fruit, copying, JSON."""
    suite = load_suite(None)
    ids = {prompt.id for prompt in suite.prompts}
    assert {"smoke", "arithmetic", "translate", "fruit", "copy", "json"} <= ids
    assert any(ord(sign) > 0x4E00 for prompt in suite.prompts for sign in prompt.text)
    assert suite.rule_for("smollm2").required
    assert suite.rule_for("unheard-of").min_pass_share > 0


@pytest.mark.parametrize("content", ["no toml", 'version = "1"', ""])
def test_a_wrong_file_is_named(tmp_path: Path, content: str) -> None:
    """With the setting that points to it."""
    path = tmp_path / "suite.toml"
    path.write_text(content)
    with pytest.raises(SettingsError, match="GATEMESH_AGENT_PROBE_SUITE"):
        load_suite(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """With the reason."""
    with pytest.raises(SettingsError, match="No such file"):
        load_suite(tmp_path / "none.toml")
