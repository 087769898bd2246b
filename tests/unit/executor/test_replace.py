"""The steps that give an engine fresh weights."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from gatemesh_common.messages import Action, ReplaceInstance, StepName
from gatemesh_executor.backends.base import StartFailedError
from gatemesh_executor.instances import Weights
from gatemesh_executor.jobs import Job
from gatemesh_executor.playbooks import PLAYBOOKS, run_playbook
from gatemesh_executor.replace import hold_folder
from gatemesh_executor.weights.folders import DiskFullError, FolderFailedError
from gatemesh_executor.weights.manifest import WeightsRefusedError
from gatemesh_executor.weights.pull import PullFailedError

from .conftest import INSTANCES, World

STEPS = PLAYBOOKS[Action.REPLACE]
ALL = ["stopped", "pulled", "verified", "scanned", "started", "ready"]
HEADER = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
GOOD, NAN = b"\0\0\x80\x3f", b"\0\0\xc0\x7f"


class Told:
    """Keeps the steps that were told."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def note(self, step: StepName, duration_s: float) -> None:
        """Keep a step."""
        self.steps.append(step)


def weight_file(number: bytes) -> bytes:
    """Return a safetensors file of one number."""
    return len(HEADER).to_bytes(8, "little") + HEADER + number


@dataclass
class Shelf:
    """A model's folder with damaged weights, and the source of good ones."""

    root: Path

    def __post_init__(self) -> None:
        for folder, number in ((self.folder, NAN), (self.source, GOOD)):
            folder.mkdir()
            (folder / "m.safetensors").write_bytes(weight_file(number))
        self.list_source()

    @property
    def folder(self) -> Path:
        """What the engine loads."""
        return self.root / "model"

    @property
    def source(self) -> Path:
        """Where the pull command copies from."""
        return self.root / "source"

    @property
    def content(self) -> bytes:
        """The number that the engine would load."""
        return (self.folder / "m.safetensors").read_bytes()[-4:]

    def list_source(self) -> None:
        """Write the manifest of the source as it is."""
        digest = hashlib.sha256((self.source / "m.safetensors").read_bytes()).hexdigest()
        (self.root / "SHA256SUMS").write_text(f"{digest}  m.safetensors\n")

    def weights(self, **changes: object) -> Weights:
        """Return the settings for it."""
        fields: dict[str, object] = {
            "folder": self.folder,
            "manifest": self.root / "SHA256SUMS",
            "pull": ("cp", "-r", f"{self.source}/.", "{folder}"),
        }
        return Weights.model_validate(fields | changes)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """Give a shelf."""
    return Shelf(tmp_path)


def job_of(command: ReplaceInstance, weights: Weights | None) -> Job:
    """Return a job for an instance with these weights."""
    return Job(command, INSTANCES["engine-0"].model_copy(update={"weights": weights}))


async def replace(world: World, job: Job) -> list[str]:
    """Run the playbook and return its steps."""
    told = Told()
    await run_playbook(world.tools, job, told, world.time.clock)
    return told.steps


async def life(world: World) -> str | None:
    """Return the life that runs."""
    return (await world.backend.observe_all())["engine-0"].life_id


async def test_a_replacement_runs_on_proven_files(world: World, shelf: Shelf) -> None:
    """Every step is told, and nothing is left beside the folder but the log."""
    command = world.command(ReplaceInstance, life_id=await world.start())
    assert await replace(world, job_of(command, shelf.weights())) == ALL
    assert shelf.content == GOOD
    assert await life(world) == "life-2"
    assert sorted(path.name for path in shelf.root.iterdir()) == [
        ".model.pull.log",
        "SHA256SUMS",
        "model",
        "source",
    ]


@pytest.mark.parametrize("finished", range(len(STEPS) + 1))
async def test_cut_after_any_step_it_ends_the_same(
    world: World, shelf: Shelf, finished: int
) -> None:
    """One life ends and one begins on good files, wherever the executor was killed."""
    command = world.command(ReplaceInstance, life_id=await world.start())
    weights = shelf.weights()
    for step in STEPS[:finished]:
        await step(world.tools, job_of(command, weights))
    steps = await replace(world, job_of(command, weights))
    assert steps[-5:] == ALL[1:]
    assert (shelf.content, await life(world)) == (GOOD, "life-2")
    assert len(list(shelf.root.iterdir())) == 4


async def test_cut_within_the_pull_it_begins_anew(world: World, shelf: Shelf) -> None:
    """Half a download is no download."""
    command = world.command(ReplaceInstance, life_id=await world.start())
    # As the first try left it: the folder of this command, with a part of a file.
    weights = shelf.weights()
    broken = shelf.weights(pull=("sh", "-c", "echo half > m.safetensors; exit 1"))
    with pytest.raises(PullFailedError):
        await replace(world, job_of(command, broken))
    assert await replace(world, job_of(command, weights)) == ALL[1:]
    assert shelf.content == GOOD


async def test_what_was_pulled_is_not_pulled_again(world: World, shelf: Shelf) -> None:
    """Killed after it, the next delivery goes on with the same files."""
    command = world.command(ReplaceInstance)
    for step in STEPS[:2]:
        await step(world.tools, job_of(command, shelf.weights()))
    gone = shelf.weights(pull=("false",))
    assert await replace(world, job_of(command, gone)) == ALL[1:]


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        pytest.param(lambda s: (s.source / "m.safetensors").unlink(), "missing", id="missing"),
        pytest.param(lambda s: (s.source / "x").touch(), "x: not in the manifest", id="extra"),
        pytest.param(
            lambda s: (s.source / "m.safetensors").write_bytes(weight_file(b"\0\0\0\0")),
            "m.safetensors: SHA-256",
            id="wrong",
        ),
        pytest.param(
            lambda s: (
                (s.source / "m.safetensors").write_bytes(weight_file(NAN)),
                s.list_source(),
            ),
            "m.safetensors: tensor w: 1 NaN",
            id="nan-by-the-manifest",
        ),
        pytest.param(
            lambda s: (
                (s.source / "m.safetensors").write_bytes(weight_file(GOOD)[:-1]),
                s.list_source(),
            ),
            "m.safetensors: 1 bytes are missing",
            id="cut",
        ),
    ],
)
async def test_a_bad_download_never_serves(  # type: ignore[no-untyped-def]
    world: World, shelf: Shelf, spoil, named: str
) -> None:
    """The instance stays stopped, the folder as it was, the bad files go."""
    spoil(shelf)
    command = world.command(ReplaceInstance, life_id=await world.start())
    with pytest.raises(WeightsRefusedError) as caught:
        await replace(world, job_of(command, shelf.weights()))
    assert named in str(caught.value)
    assert await life(world) is None
    assert shelf.content == NAN
    assert not list(shelf.root.glob(".model.fresh-*"))


async def test_a_life_begun_by_hand_does_not_keep_the_old_files(world: World, shelf: Shelf) -> None:
    """The start would otherwise find it running and call it the new one."""
    command = world.command(ReplaceInstance, life_id=await world.start())
    job = job_of(command, shelf.weights())
    for step in STEPS[:4]:
        await step(world.tools, job)
    await world.start()
    await replace(world, job)
    assert await life(world) == "life-3"


async def test_a_pull_that_fails_leaves_it_stopped(world: World, shelf: Shelf) -> None:
    """It was ejected for its weights; they are all there is."""
    command = world.command(ReplaceInstance, life_id=await world.start())
    with pytest.raises(PullFailedError):
        await replace(world, job_of(command, shelf.weights(pull=("false",))))
    assert await life(world) is None


async def test_a_pull_that_fails_leaves_no_part_on_the_disk(world: World, shelf: Shelf) -> None:
    """What it got so far may be what filled the disk."""
    filling = ("sh", "-c", "head -c 100000 /dev/zero > half; exit 1")
    with pytest.raises(PullFailedError):
        await replace(world, job_of(world.command(ReplaceInstance), shelf.weights(pull=filling)))
    assert not list(shelf.root.glob(".model.part-*"))


async def test_a_full_disk_is_told_before_the_pull(world: World, shelf: Shelf) -> None:
    """A download that cannot fit is not begun."""
    job = job_of(world.command(ReplaceInstance), shelf.weights(least_free_bytes=2**62))
    with pytest.raises(DiskFullError):
        await replace(world, job)
    assert not (shelf.root / ".model.pull.log").exists()


async def test_a_folder_in_nobodys_reach_is_told(world: World, shelf: Shelf) -> None:
    """A report says so; the command does not vanish."""
    job = job_of(world.command(ReplaceInstance), shelf.weights(folder=Path("/proc/model")))
    with pytest.raises(FolderFailedError):
        await replace(world, job)


async def test_the_old_files_outlast_a_start_that_fails(world: World, shelf: Shelf) -> None:
    """An operator may still want them; the next replacement removes them."""
    world.backend.behave("engine-0", fails_to_start=True)
    with pytest.raises(StartFailedError):
        await replace(world, job_of(world.command(ReplaceInstance), shelf.weights()))
    [old] = shelf.root.glob(".model.old-*")
    assert (old / "m.safetensors").read_bytes()[-4:] == NAN
    world.backend.behave("engine-0", fails_to_start=False)
    await replace(world, job_of(world.command(ReplaceInstance), shelf.weights()))
    assert not list(shelf.root.glob(".model.old-*"))


async def test_without_weights_it_is_a_cold_start(world: World) -> None:
    """And the report says so."""
    job = job_of(world.command(ReplaceInstance, life_id=await world.start()), None)
    assert await replace(world, job) == ["stopped", "started", "ready"]
    assert job.notes == ["no weights configured, cold start only"]


async def test_without_a_pull_command_what_is_there_must_prove_itself(
    world: World, shelf: Shelf
) -> None:
    """Good files start; damaged ones never do."""
    weights = shelf.weights(pull=())
    with pytest.raises(WeightsRefusedError, match="SHA-256"):
        await replace(world, job_of(world.command(ReplaceInstance), weights))
    shutil.copytree(shelf.source, shelf.folder, dirs_exist_ok=True)
    job = job_of(world.command(ReplaceInstance), weights)
    assert await replace(world, job) == ["verified", "scanned", "started", "ready"]
    assert job.notes == ["no pull command configured, nothing was pulled"]


async def test_without_a_manifest_the_numbers_are_looked_at(world: World, shelf: Shelf) -> None:
    """NaN is NaN, whatever the file should have been."""
    weights = shelf.weights(pull=(), manifest=None)
    job = job_of(world.command(ReplaceInstance), weights)
    with pytest.raises(WeightsRefusedError, match="1 NaN"):
        await replace(world, job)
    assert "no manifest configured, nothing was verified" in job.notes


async def test_a_manifest_that_comes_along_is_no_extra_file(world: World, shelf: Shelf) -> None:
    """It lists the files beside it."""
    shutil.copy(shelf.root / "SHA256SUMS", shelf.source / "SHA256SUMS")
    weights = shelf.weights(manifest=shelf.folder / "SHA256SUMS")
    assert await replace(world, job_of(world.command(ReplaceInstance), weights)) == ALL[1:]


async def test_odd_tensors_are_noted(world: World, shelf: Shelf) -> None:
    """The report of a success names them."""
    two = HEADER.replace(b"[1]", b"[2]").replace(b"[0,4]", b"[0,8]")
    content = len(two).to_bytes(8, "little") + two + bytes(8)
    (shelf.source / "m.safetensors").write_bytes(content)
    shelf.list_source()
    job = job_of(world.command(ReplaceInstance), shelf.weights())
    await replace(world, job)
    assert job.notes == ["m.safetensors: w: all_zero"]


async def test_one_folder_is_replaced_by_one_command_at_a_time(world: World, shelf: Shelf) -> None:
    """Instances that share it would tear it from each other."""
    tools = world.tools
    job = job_of(world.command(ReplaceInstance), shelf.weights())
    async with hold_folder(tools, job):
        assert tools.weights.locks[shelf.folder].locked()
    assert not tools.weights.locks[shelf.folder].locked()
    async with hold_folder(tools, job_of(world.command(ReplaceInstance), None)):
        assert len(tools.weights.locks) == 1
