"""The folder of an engine while it is replaced."""

from pathlib import Path

import pytest

from gatemesh_executor.weights.folders import (
    DiskFullError,
    FolderFailedError,
    WeightsFolder,
    flush,
    size_of,
    told_as_failure,
)

FIRST, SECOND = "11111111-aaaa", "22222222-bbbb"


def fill(folder: Path, word: str) -> None:
    """Put one file into a folder."""
    (folder / "w").write_text(word)


def pulled(place: WeightsFolder, word: str) -> None:
    """Do what a successful pull does."""
    fill(place.begin(), word)
    place.finish_pull()


def names(folder: Path) -> list[str]:
    """Return the names in a folder."""
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with old weights."""
    found = tmp_path / "model"
    found.mkdir()
    fill(found, "old")
    return found


def test_the_old_files_stay_until_they_are_cleared(folder: Path) -> None:
    """Then only the new ones are left."""
    place = WeightsFolder(folder, FIRST)
    pulled(place, "new")
    place.swap()
    assert (folder / "w").read_text() == "new"
    assert (place.old / "w").read_text() == "old"
    place.clear()
    assert names(folder.parent) == ["model"]


def test_a_swap_done_twice_is_one_swap(folder: Path) -> None:
    """A redelivery does not bring the old files back."""
    place = WeightsFolder(folder, FIRST)
    pulled(place, "new")
    place.swap()
    WeightsFolder(folder, FIRST).swap()
    assert (folder / "w").read_text() == "new"
    assert place.is_swapped()
    assert not WeightsFolder(folder, SECOND).is_swapped()


def test_a_swap_cut_between_its_renames_goes_on(folder: Path) -> None:
    """For a moment there is no folder at all."""
    place = WeightsFolder(folder, FIRST)
    pulled(place, "new")
    folder.rename(place.old)
    assert not place.is_swapped()
    place.swap()
    assert (folder / "w").read_text() == "new"


def test_the_first_pull_needs_no_folder(tmp_path: Path) -> None:
    """A new machine has none."""
    place = WeightsFolder(tmp_path / "models" / "m", FIRST)
    pulled(place, "new")
    place.swap()
    place.clear()
    assert (tmp_path / "models" / "m" / "w").read_text() == "new"


def test_a_link_is_turned(tmp_path: Path) -> None:
    """Someone else's target stays; those that we made go when they are no longer used."""
    target = tmp_path / "shared"
    target.mkdir()
    fill(target, "old")
    link = tmp_path / "model"
    link.symlink_to(target)
    for command_id, word in ((FIRST, "new"), (SECOND, "newer")):
        place = WeightsFolder(link, command_id)
        pulled(place, word)
        place.swap()
        place.swap()
        assert (link / "w").read_text() == word
        place.clear()
    assert link.is_symlink()
    assert (target / "w").read_text() == "old"
    assert names(tmp_path) == ["model", "model-22222222bbbb", "shared"]


def test_another_model_under_a_name_that_begins_alike_stays(tmp_path: Path) -> None:
    """Be it a folder that was replaced, too, or a link to one."""
    target = tmp_path / "shared"
    target.mkdir()
    link = tmp_path / "qwen"
    link.symlink_to(target)
    other = WeightsFolder(tmp_path / "qwen-7b", SECOND)
    pulled(other, "others")
    other.swap()
    (tmp_path / "qwen-old").symlink_to("qwen-7b")
    place = WeightsFolder(link, FIRST)
    pulled(place, "new")
    place.swap()
    place.clear()
    assert names(tmp_path) == ["qwen", "qwen-11111111aaaa", "qwen-7b", "qwen-old", "shared"]
    assert (tmp_path / "qwen-7b" / "w").read_text() == "others"


def test_what_others_left_is_removed(folder: Path) -> None:
    """Half a pull of another command, and old files whose new ones never ran."""
    first = WeightsFolder(folder, FIRST)
    first.begin()
    (folder.parent / ".model.old-x").mkdir()
    (folder.parent / "model2").mkdir()
    WeightsFolder(folder, SECOND).begin()
    assert names(folder.parent) == [".model.part-22222222bbbb", "model", "model2"]


def test_refused_files_are_removed(folder: Path) -> None:
    """The folder keeps what it had."""
    place = WeightsFolder(folder, FIRST)
    pulled(place, "bad")
    place.discard()
    assert names(folder.parent) == ["model"]
    assert (folder / "w").read_text() == "old"


def test_room_is_needed_for_a_second_copy(folder: Path) -> None:
    """Of what is there, or of what is said."""
    place = WeightsFolder(folder, FIRST)
    place.need_room(0)
    with pytest.raises(DiskFullError, match="GB needed"):
        place.need_room(2**62)


def test_every_file_is_flushed_before_it_counts(folder: Path) -> None:
    """In folders within, too; links that point nowhere are passed over."""
    (folder / "inner").mkdir()
    fill(folder / "inner", "x")
    (folder / "lost").symlink_to("nowhere")
    assert flush(folder) == 2


def test_sizes(folder: Path, tmp_path: Path) -> None:
    """Links that point nowhere count nothing, nor does an absent folder."""
    (folder / "lost").symlink_to("nowhere")
    assert size_of(folder) == 3
    assert size_of(tmp_path / "none") == 0


def test_what_the_disk_says_is_a_failure(tmp_path: Path) -> None:
    """It is reported, not thrown away with the command."""
    with pytest.raises(FolderFailedError, match="No such file"), told_as_failure():
        (tmp_path / "none").rename(tmp_path / "x")
