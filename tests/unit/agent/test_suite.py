"""The probe suite and its rules."""

from pathlib import Path
from random import Random

import pytest

from gatemesh_agent.suite import (
    OWN_SUITE,
    Answer,
    ModelRule,
    Prompt,
    Suite,
    Way,
    askings,
    compare_pairs,
    conclude,
    load_suite,
    quick_askings,
)
from gatemesh_common.errors import SettingsError

PROMPTS = tuple(Prompt(id=name, text=name, expect=name) for name in ("a", "b", "c", "d"))
SUITE = Suite(
    version="1",
    prompts=PROMPTS,
    models=(
        ModelRule(pattern="smol", required=("a", "b"), min_pass_share=0.5),
        ModelRule(pattern="sim", required="all"),
        ModelRule(pattern="", min_pass_share=0.75),
    ),
)


def answers(matched: str, fault: str = "") -> tuple[Answer, ...]:
    """Return answers of which those named match, and one may be at fault."""
    return tuple(
        Answer(each.id, each.id in matched, "empty" if each.id == fault else None)
        for each in PROMPTS
    )


def pair(name: str, *, fresh: bool, cached: bool) -> tuple[Answer, Answer]:
    """Return one prompt asked with its prefix, fresh and cached."""
    return (Answer(name, fresh, way=Way.FRESH), Answer(name, cached, way=Way.CACHED))


@pytest.mark.parametrize(
    ("model", "given", "passed", "failed"),
    [
        pytest.param("SmolLM2", answers("ab"), True, [], id="required-right"),
        pytest.param("SmolLM2", answers("acd"), False, ["b"], id="required-wrong"),
        pytest.param("SmolLM2", answers("abcd", "d"), False, ["d"], id="at-fault-though-right"),
        pytest.param("sim", answers("abcd"), True, [], id="all-required"),
        pytest.param("sim", answers("abd"), False, ["c"], id="one-of-all-wrong"),
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


def test_dropped_prompts_do_not_count() -> None:
    """What the healthy model cannot answer says nothing, and is named."""
    result = conclude(SUITE, "other", answers("abc"), dropped=("d",))
    assert (result.share, result.details["total"], result.details["dropped"]) == (1.0, 3, ["d"])


def test_nothing_left_to_count_is_not_judged() -> None:
    """Neither passed nor failed."""
    assert not conclude(SUITE, "other", answers("abcd"), dropped=tuple("abcd")).judged


def test_an_engine_without_room_is_no_evidence() -> None:
    """A few lost answers leave the rest; most of them lost leave nothing."""
    some = (*answers("abc")[:3], Answer("d", matched=False, busy=True))
    assert conclude(SUITE, "other", some).passed
    most = (answers("a")[0], *(Answer(name, matched=False, busy=True) for name in "bcd"))
    assert not conclude(SUITE, "other", most).judged
    assert conclude(SUITE, "other", most).details["busy"] == 3


def test_a_fault_is_judged_however_busy_it_is() -> None:
    """Proof does not need many answers."""
    busy = tuple(Answer(name, matched=False, busy=True) for name in "bcd")
    result = conclude(SUITE, "other", (Answer("a", matched=False, fault="nan_logits"), *busy))
    assert (result.judged, result.passed) == (True, False)


def test_a_refused_suite_is_not_judged() -> None:
    """A missing key is no damage."""
    refused = tuple(Answer(each.id, matched=False, refused=True) for each in PROMPTS)
    assert not conclude(SUITE, "other", refused).judged


def test_answers_that_only_a_cached_prefix_spoils_tell_the_cache() -> None:
    """One pair may be a near-tie; two are a sign."""
    one = (*answers("abcd"), *pair("a", fresh=True, cached=False))
    two = (*one, *pair("b", fresh=True, cached=False))
    assert conclude(SUITE, "other", one).passed
    result = conclude(SUITE, "other", two)
    assert result.details["failed"] == ["prefix-cache"]
    assert result.details["prefix"] == {"pairs": 2, "cached_wrong": ["a", "b"], "fresh_wrong": []}


def test_a_prompt_wrong_both_ways_tells_nothing_of_the_cache() -> None:
    """The prefix itself may be too much for a small model."""
    given = (*pair("a", fresh=False, cached=False), *pair("b", fresh=False, cached=True))
    assert compare_pairs(given) == {"pairs": 2, "cached_wrong": [], "fresh_wrong": ["b"]}


def test_a_fresh_prompt_that_cannot_be_asked_makes_no_pair() -> None:
    """An engine without salts shows only what is cached."""
    fresh = Answer("a", matched=False, refused=True, way=Way.FRESH)
    cached = Answer("a", matched=True, way=Way.CACHED)
    assert compare_pairs((fresh, cached))["pairs"] == 0


def test_a_gate_fault_with_a_cached_prefix_fails() -> None:
    """As any other."""
    bad = Answer("a", matched=False, fault="empty", way=Way.CACHED)
    assert not conclude(SUITE, "other", (*answers("abcd"), bad)).passed


def test_a_run_is_shuffled_by_its_seed() -> None:
    """Two agents with one ticket ask the same; two tickets do not."""
    suite = load_suite(None)
    first, again, other = (askings(suite, (), Random(seed)) for seed in (1, 1, 2))
    assert first == again
    assert [one.prompt.id for one in first] != [one.prompt.id for one in other]
    assert sorted(one.prompt.id for one in first if one.way is Way.PLAIN) == sorted(
        prompt.id for prompt in suite.prompts
    )


def test_some_prompts_are_asked_fresh_before_they_are_asked_cached() -> None:
    """The same ones, both ways."""
    run = askings(load_suite(None), (), Random(1))
    ways = {way: [one.prompt.id for one in run if one.way is way] for way in Way}
    assert ways[Way.FRESH] == ways[Way.CACHED]
    assert len(ways[Way.FRESH]) == 3
    order = [one.way for one in run if one.way is not Way.PLAIN]
    assert order == [Way.FRESH] * 3 + [Way.CACHED] * 3


def test_a_quick_run_asks_a_few_prompts_plainly() -> None:
    """Or all of them, where none is marked."""
    run = quick_askings(load_suite(None), ("days",), Random(1))
    assert {one.way for one in run} == {Way.PLAIN}
    assert {one.prompt.id for one in run} == {
        *("smoke", "arithmetic", "capital", "fruit", "copy", "opposite", "animal"),
    }
    assert len(quick_askings(SUITE, (), Random(1))) == len(PROMPTS)


def test_what_is_left_out_is_not_asked() -> None:
    """In no way."""
    run = askings(load_suite(None), ("copy", "smoke"), Random(1))
    assert not {"copy", "smoke"} & {one.prompt.id for one in run}


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        ({"expect": r"hello.*world"}, "Sure!\nHello\n**WORLD**.", "goodbye"),
        ({"number": 5}, "The answer is five.", "six"),
        ({"copy": "AB-1"}, "`AB-1`", "ab-1"),
        ({"json": {"a": 1}}, '```\n{"a": 1}\n```', "{}"),
        (
            {"code": {"arguments": 1, "operator": "*"}},
            "def f(x):\n    return x * 2",
            "def f(x): return x",
        ),
    ],
)
def test_every_check_is_applied(check: dict[str, object], right: str, wrong: str) -> None:
    """As the data file names it."""
    prompt = Prompt.model_validate({"id": "x", "text": "x", **check})
    assert prompt.matches(right)
    assert not prompt.matches(wrong)


@pytest.mark.parametrize("checks", [{}, {"expect": "a", "number": 1}])
def test_a_prompt_has_one_check(checks: dict[str, object]) -> None:
    """None would pass for ever; two hide each other."""
    with pytest.raises(ValueError, match="give one of expect, number"):
        Prompt.model_validate({"id": "x", "text": "x", **checks})


@pytest.mark.parametrize("field", ["required", "left_out"])
def test_a_rule_cannot_name_what_is_not_asked(field: str) -> None:
    """A typing error would otherwise never pass or never fail."""
    with pytest.raises(ValueError, match="unknown prompts"):
        Suite(
            version="1",
            prompts=PROMPTS,
            models=(ModelRule.model_validate({"pattern": "", field: ("z",)}),),
        )


def test_an_id_is_used_once() -> None:
    """Answers are told apart by it."""
    with pytest.raises(ValueError, match="used twice"):
        Suite(version="1", prompts=(*PROMPTS, PROMPTS[0]), models=SUITE.models)


def test_the_own_suite_covers_what_the_diagnosis_asks() -> None:
    """English and Chinese, arithmetic, translation, a fruit, copying, JSON, code."""
    suite = load_suite(None)
    ids = {prompt.id for prompt in suite.prompts}
    assert {"arithmetic", "translate", "fruit", "copy", "json", "code-add"} <= ids
    chinese = [one for one in suite.prompts if any(ord(sign) > 0x4E00 for sign in one.text)]
    assert len(chinese) >= 6
    assert len(suite.prompts) >= 20
    assert sum(len(f"{turn.question} {turn.answer}".split()) for turn in suite.turns) > 100
    assert suite.rule_for("smollm2").required
    assert suite.rule_for("unheard-of").calibrated


@pytest.mark.parametrize("file", sorted(OWN_SUITE.glob("*.toml")), ids=lambda path: path.name)
def test_every_data_file_is_part_of_the_suite(file: Path) -> None:
    """One that nobody reads would be believed to be asked."""
    text = file.read_text(encoding="utf-8")
    ids = {prompt.id for prompt in load_suite(None).prompts}
    assert all(f'id = "{name}"' not in text or name in ids for name in ids)
    assert text.count("[[prompts]]") == sum(f'id = "{name}"\n' in text for name in ids)


@pytest.mark.parametrize("content", ["no toml", 'version = "1"', ""])
def test_a_wrong_file_is_named(tmp_path: Path, content: str) -> None:
    """With the setting that points to it."""
    path = tmp_path / "suite.toml"
    path.write_text(content)
    for source in (path, tmp_path):
        with pytest.raises(SettingsError, match="GATEMESH_AGENT_PROBE_SUITE"):
            load_suite(source)


@pytest.mark.parametrize("name", ["none.toml", "."])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    """With the reason; a folder needs its head."""
    with pytest.raises(SettingsError, match="No such file"):
        load_suite(tmp_path / name)


def test_a_suite_of_one_file_is_read(tmp_path: Path) -> None:
    """Smaller ones need no folder."""
    path = tmp_path / "own.toml"
    path.write_text(
        'version = "9"\n[[prompts]]\nid = "a"\ntext = "1+1?"\nnumber = 2\n[[models]]\npattern = ""'
    )
    suite = load_suite(path)
    assert suite.prompts[0].matches("two")
    assert askings(suite, (), Random(1)) == [askings(suite, (), Random(2))[0]]
