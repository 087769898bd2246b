"""The instances file."""

from pathlib import Path

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_executor.instances import (
    CoreDump,
    Weights,
    load_instances,
    parse_fleet,
    parse_instances,
)

ONE = """
[[instances]]
instance_id = "engine-0"
pool = "chat"
base_url = "http://127.0.0.1:8000"
program = "vllm:engine_00"
model_version = "m1"
"""


def test_instances_are_found_by_id() -> None:
    """Every field arrives."""
    instance = parse_instances(ONE, "f.toml")["engine-0"]
    assert (instance.pool, instance.program) == ("chat", "vllm:engine_00")
    assert (instance.base_url, instance.model_version) == ("http://127.0.0.1:8000", "m1")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param(ONE.replace("base_url", "url"), "instances[0].base_url", id="missing"),
        pytest.param(ONE + 'color = "red"\n', "instances[0].color", id="unknown"),
        pytest.param(ONE.replace("http://", "ftp://"), "instances[0].base_url", id="scheme"),
        pytest.param(ONE.replace(":8000", ":8000/v1"), "instances[0].base_url", id="path"),
        pytest.param(ONE.replace('"engine-0"', '""'), "instances[0].instance_id", id="empty"),
        pytest.param("", "instances", id="none"),
        pytest.param("instances = []", "instances", id="empty-list"),
        pytest.param("[[instances", "not valid TOML", id="no-toml"),
        pytest.param(ONE + ONE, "instance_id: used twice: engine-0", id="twice"),
        pytest.param(
            ONE + ONE.replace("engine-0", "engine-1"), "program: used twice", id="shared-program"
        ),
    ],
)
def test_a_fault_names_file_and_field(text: str, named: str) -> None:
    """The operator finds the line."""
    with pytest.raises(SettingsError) as caught:
        parse_instances(text, "f.toml")
    assert str(caught.value).startswith("f.toml: ")
    assert named in str(caught.value)


WEIGHTS = """
[instances.weights]
folder = "models/m1"
manifest = "m1.sha256"
pull = ["fetch", "{folder}"]
"""


def test_weights_of_a_pool_are_those_of_its_instances() -> None:
    """An instance's own come first; paths are seen from the file's folder."""
    pools = WEIGHTS.replace("instances.weights", "pools.chat.weights").replace("m1", "shared")
    other = ONE.replace("engine-0", "engine-1").replace("engine_00", "engine_01")
    found = parse_instances(ONE + WEIGHTS + other + pools, "f.toml", Path("/etc/mesh"))
    own, shared = found["engine-0"].weights, found["engine-1"].weights
    assert own is not None
    assert shared is not None
    assert own.folder == Path("/etc/mesh/models/m1")
    assert own.manifest == Path("/etc/mesh/m1.sha256")
    assert shared.folder == Path("/etc/mesh/models/shared")
    assert parse_instances(ONE, "f.toml")["engine-0"].weights is None


def test_a_manifest_among_the_files_is_pulled_along() -> None:
    """The one of the fresh copy counts; one elsewhere stays where it is."""
    inside = Weights(folder=Path("/m/a"), manifest=Path("/m/a/SHA256SUMS"))
    assert inside.manifest_in(Path("/m/fresh")) == Path("/m/fresh/SHA256SUMS")
    outside = Weights(folder=Path("/m/a"), manifest=Path("/m/a.sha256"))
    assert outside.manifest_in(Path("/m/fresh")) == Path("/m/a.sha256")
    assert Weights(folder=Path("/m/a")).manifest_in(Path("/m/fresh")) is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param(
            WEIGHTS.replace('manifest = "m1.sha256"', ""),
            "instances[0].weights: pull needs manifest",
            id="unverified",
        ),
        pytest.param(WEIGHTS + "timeout_s = 0", "instances[0].weights.timeout_s", id="bounds"),
        pytest.param(WEIGHTS + 'folders = "x"', "instances[0].weights.folders", id="unknown"),
        pytest.param(
            WEIGHTS.replace("instances.weights", "pools.chap.weights"),
            "pools.chap: no instance is in this pool",
            id="pool",
        ),
    ],
)
def test_a_fault_of_weights_names_the_field(text: str, named: str) -> None:
    """And the way out."""
    with pytest.raises(SettingsError) as caught:
        parse_instances(ONE + text, "f.toml")
    assert named in str(caught.value)


def test_a_missing_file_names_the_setting(tmp_path: Path) -> None:
    """The operator knows which variable to change."""
    with pytest.raises(SettingsError, match="GATEMESH_EXECUTOR_INSTANCES_FILE"):
        load_instances(tmp_path / "none.toml")


def test_a_file_is_read(tmp_path: Path) -> None:
    """The path is all it needs."""
    path = tmp_path / "instances.toml"
    path.write_text(ONE)
    assert list(load_instances(path)) == ["engine-0"]


def test_a_way_back_comes_from_the_pool_or_is_the_instances_own() -> None:
    """Its folder is seen from that of the file; a command is required."""
    head = '[[instances]]\ninstance_id = "{0}"\nprogram = "{0}"\nbase_url = "http://a:1"\n'
    text = (
        head.format("a")
        + 'roll_back = {command = ["own"], folder = "here"}\n'
        + head.format("b")
        + '[pools.default.roll_back]\ncommand = ["shared"]\n'
    )
    found = parse_instances(text, "i.toml", Path("/etc/g"))
    ways = [found[name].roll_back for name in ("a", "b")]
    assert [(way.command, way.folder) for way in ways if way] == [
        (("own",), Path("/etc/g/here")),
        (("shared",), Path("/etc/g")),
    ]
    with pytest.raises(SettingsError, match=r"pools.default.roll_back.command"):
        parse_instances(text.replace('["shared"]', "[]"), "i.toml")


def test_core_dumps_are_off_unless_they_are_asked_for() -> None:
    """A dump holds what clients asked, and takes much room."""
    text = '[[instances]]\ninstance_id = "a"\nprogram = "a"\nbase_url = "http://a:1"\n'
    assert parse_instances(text, "i.toml")["a"].core_dump is None
    assert CoreDump().how == "off"
    text += '[pools.default.core_dump]\nhow = "gcore"\nkeep = 1\n'
    found = parse_instances(text, "i.toml", Path("/etc/g"))["a"].core_dump
    assert found is not None
    assert (found.how, found.folder, found.keep) == ("gcore", Path("/etc/g/core-dumps"), 1)
    with pytest.raises(SettingsError, match=r"pools.default.core_dump.how"):
        parse_instances(text.replace("gcore", "dd"), "i.toml")


BALANCERS = """
[balancers.front]
kind = "haproxy"
socket = "unix:///run/haproxy/admin.sock"
backend = "chat"

[balancers.edge]
kind = "nginx"
upstream_file = "chat.servers"
"""
OTHER = ONE.replace("engine-0", "engine-1").replace("engine_00", "engine_01")


def test_balancers_of_a_pool_list_all_its_instances() -> None:
    """By their ids, or for nginx by their addresses; an instance's own list comes first."""
    pool = '\n[pools.chat]\nbalancers = [{ name = "front" }, { name = "edge" }]\n'
    own = 'balancers = [{ name = "front", backend = "b", server = "s1" }]\n'
    fleet = parse_fleet(ONE + OTHER + own + pool + BALANCERS, "f.toml", Path("/etc/mesh"))
    listings = {
        name: [(one.name, one.backend, one.server) for one in instance.balancers or ()]
        for name, instance in fleet.instances.items()
    }
    assert listings["engine-0"] == [("front", "chat", "engine-0"), ("edge", None, "127.0.0.1:8000")]
    assert listings["engine-1"] == [("front", "b", "s1")]
    assert fleet.balancers["edge"].model_dump()["upstream_file"] == Path("/etc/mesh/chat.servers")


def test_the_example_of_the_page_is_valid() -> None:
    """Operators copy it."""
    page = Path(__file__).parents[3] / "docs" / "balancers.md"
    text = page.read_text().split("```toml\n", 1)[1].split("```", 1)[0]
    fleet = parse_fleet(text, "balancers.md")
    assert set(fleet.balancers) == {"front", "edge"}
    assert [one.server for one in fleet.instances["engine-0"].balancers or ()] == ["gpu-a"]


def test_no_balancer_is_the_default() -> None:
    """Agents alone route; an empty list takes an instance from its pool's balancers."""
    assert parse_instances(ONE, "f.toml")["engine-0"].balancers == ()
    pool = '\n[pools.chat]\nbalancers = [{ name = "front" }]\n'
    found = parse_instances(ONE + "balancers = []\n" + pool + BALANCERS, "f.toml")
    assert found["engine-0"].balancers == ()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param(
            ONE + 'balancers = [{ name = "frnt" }]\n' + BALANCERS,
            "instances[0].balancers[0].name: no [balancers.frnt] in this file (there are: edge, "
            "front); add that table",
            id="unknown",
        ),
        pytest.param(
            ONE + '[pools.chat]\nbalancers = [{ name = "front" }]\n',
            "pools.chat.balancers[0].name: no [balancers.front] in this file (there are: none)",
            id="none",
        ),
        pytest.param(
            ONE + 'balancers = [{ name = "front" }]\n' + BALANCERS.replace('backend = "chat"', ""),
            "instances[0].balancers[0].backend: missing; set it here or in [balancers.front]",
            id="no-backend",
        ),
        pytest.param(
            ONE + 'balancers = [{ name = "edge", backend = "b" }]\n' + BALANCERS,
            "instances[0].balancers[0].backend: nginx has none; leave it out",
            id="nginx-backend",
        ),
        pytest.param(
            ONE + 'balancers = [{ name = "front", server = "s;x" }]\n' + BALANCERS,
            "instances[0].balancers[0].server: String should match",
            id="injected",
        ),
        pytest.param(
            ONE + BALANCERS.replace('"haproxy"', '"traefik"'), "balancers.front: ", id="kind"
        ),
        pytest.param(
            ONE + BALANCERS.replace("unix:///", "/"), "balancers.front.haproxy.socket", id="socket"
        ),
        pytest.param(
            ONE.replace("engine-0", "engine 0") + 'balancers = [{ name = "front" }]\n' + BALANCERS,
            "instances[0].balancers: set `server`: 'engine 0' cannot stand",
            id="id-is-no-name",
        ),
        pytest.param(
            ONE
            + 'balancers = [{ name = "front", server = "s" }]\n'
            + OTHER
            + 'balancers = [{ name = "front", server = "s" }]\n'
            + BALANCERS,
            "balancers.server: used twice: s of chat at front",
            id="twice",
        ),
    ],
)
def test_a_fault_about_a_balancer_names_the_field_and_the_way_out(text: str, named: str) -> None:
    """The operator finds the line."""
    with pytest.raises(SettingsError) as caught:
        parse_instances(text, "f.toml")
    assert named in str(caught.value)
