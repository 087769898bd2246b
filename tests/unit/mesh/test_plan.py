"""Every service gets the settings it needs, and engines keep their own stop rules."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from gatemesh_console.tokens import Person, Role, parse_tokens
from gatemesh_mesh import models_env
from gatemesh_mesh.plan import (
    SERVICE_PORTS,
    SERVICES,
    Addresses,
    StackPlan,
    render_instances,
    service_environment,
    service_programs,
    simulated_engines,
)
from gatemesh_mesh.state import StateFolder, write_json


@pytest.fixture
def plan(tmp_path: Path) -> StackPlan:
    """Return a plan with two simulated engines."""
    folder = StateFolder(tmp_path)
    return StackPlan(
        folder=folder,
        addresses=Addresses("amqp://a/", "postgresql+psycopg://b/c", None),
        ports={name: 9000 + number for number, name in enumerate(SERVICE_PORTS)},
        engines=simulated_engines(folder, [8001, 8002]),
        supervisor_url="unix:///s.sock",
        supervisor_user="u",
        supervisor_password="p",
        fingerprint_key="k",
        console_token="t-0-k-e-n",
        policy_file=tmp_path / "policy.toml",
    )


def test_every_service_has_the_broker_and_its_own_settings_only(plan: StackPlan) -> None:
    """A service sees no other service's secrets."""
    environments = service_environment(plan)
    assert set(environments) == set(SERVICES)
    for service, settings in environments.items():
        assert settings["GATEMESH_AMQP_URL"] == "amqp://a/"
        others = {f"GATEMESH_{other.upper()}_" for other in SERVICES if other != service}
        assert not any(name.startswith(tuple(others)) for name in settings)
    assert "GATEMESH_DATABASE_URL" not in environments["agent"]


def test_every_service_has_its_own_login_at_a_broker_of_ours(plan: StackPlan) -> None:
    """Where the broker is somebody else's, all share what was given."""
    own = {service: f"amqp://{service}/" for service in SERVICES}
    logins = replace(plan.addresses, service_amqp_urls=own)
    environments = service_environment(replace(plan, addresses=logins))
    assert {name: each["GATEMESH_AMQP_URL"] for name, each in environments.items()} == own


def test_the_agent_starts_with_the_engines(plan: StackPlan) -> None:
    """Requests flow before the first routing table arrives."""
    agent = service_environment(plan)["agent"]
    assert agent["GATEMESH_AGENT_INSTANCES"] == (
        "engine-0=http://127.0.0.1:8001,engine-1=http://127.0.0.1:8002"
    )
    assert plan.agent_url == "http://127.0.0.1:9000"


def test_the_console_is_told_a_hash_and_nobody_the_token(plan: StackPlan) -> None:
    """People get the token; settings of a process can be read by others of the same user."""
    environments = service_environment(plan)
    assert plan.console_token not in str(environments)
    tokens = parse_tokens(environments["console"]["GATEMESH_CONSOLE_TOKENS"])
    assert tokens.person(plan.console_token) == Person("local", Role.OPERATOR)
    assert plan.console_url == f"http://127.0.0.1:{plan.ports['console']}"


def test_the_executor_trusts_the_manager_s_key(plan: StackPlan) -> None:
    """The manager alone is told where the private one lies."""
    environments = service_environment(plan)
    private, public = str(plan.folder.signing_key_file), str(plan.folder.trusted_keys_file)
    told = {name for name, known in environments.items() if private in known.values()}
    assert told == {"health_manager"}
    assert environments["executor"]["GATEMESH_EXECUTOR_TRUSTED_KEYS_FILE"] == public


def test_the_executor_s_list_is_toml(plan: StackPlan) -> None:
    """The executor acts on the programs that the stack runs."""
    found = tomllib.loads(render_instances(plan.engines))["instances"]
    assert [one["program"] for one in found] == ["engine-0", "engine-1"]
    assert set(found[0]) == {"instance_id", "pool", "base_url", "program", "model_version"}


def test_a_dead_engine_stays_dead_and_a_dead_service_does_not(plan: StackPlan) -> None:
    """Only the executor starts engines, through probation."""
    assert not any(engine.program.restarts for engine in plan.engines)
    assert all(engine.program.stop_wait_s == 60 for engine in plan.engines)
    assert all(program.restarts for program in service_programs(plan))


def test_real_engines_are_asked_sparingly(plan: StackPlan) -> None:
    """And their figures are known to be processed ones."""
    assert "GATEMESH_SHADOW_OWN_LOGPROBS" not in service_environment(plan)["shadow"]
    real = [replace(engine, is_simulated=False) for engine in plan.engines]
    shadow = service_environment(replace(plan, engines=real))["shadow"]
    assert shadow["GATEMESH_SHADOW_OWN_LOGPROBS"] == "processed"
    assert float(shadow["GATEMESH_SHADOW_PER_INSTANCE_PER_S"]) < 5


def test_the_shadow_runs_where_its_models_are(plan: StackPlan) -> None:
    """Without them it runs like the others, and says so itself."""
    programs = {one.name: one for one in service_programs(plan)}
    assert programs["shadow"].argv[0] == programs["agent"].argv[0]
    python = models_env.layout_of(plan.folder).python
    python.parent.mkdir(parents=True)
    python.touch()
    write_json(models_env.layout_of(plan.folder).stamp, dict(models_env.wanted()))
    programs = {one.name: one for one in service_programs(plan)}
    assert programs["shadow"].argv[0] == str(python)
    assert "PYTHONPATH" in programs["shadow"].environment
    assert "PYTHONPATH" not in programs["agent"].environment


def test_the_agent_listens_where_the_engines_send_figures(plan: StackPlan) -> None:
    """And nowhere when they send none."""
    assert "GATEMESH_AGENT_PLUGIN_SOCKET" not in service_environment(plan)["agent"]
    engine = plan.engines[0]
    told = {"GATEMESH_PLUGIN_OUT": "unix:/s/figures.sock"}
    telling = replace(engine, program=replace(engine.program, environment=told))
    agent = service_environment(replace(plan, engines=[telling]))["agent"]
    assert agent["GATEMESH_AGENT_PLUGIN_SOCKET"] == "unix:/s/figures.sock"


def test_what_the_agent_does_about_bad_answers_may_be_chosen(plan: StackPlan) -> None:
    """Else its own setting holds, as whoever starts the stack has it."""
    assert "GATEMESH_AGENT_GUARD" not in service_environment(plan)["agent"]
    agent = service_environment(replace(plan, guard="rescue"))["agent"]
    assert agent["GATEMESH_AGENT_GUARD"] == "rescue"


def test_the_notifier_runs_where_somebody_is_to_be_told(plan: StackPlan) -> None:
    """Last, with the folder that remembers what was told."""
    assert "notifier" not in service_environment(plan)
    telling = replace(plan, notifier={"GATEMESH_NOTIFIER_TARGETS_FILE": "/t.toml"})
    assert telling.services == (*SERVICES, "notifier")
    settings = service_environment(telling)["notifier"]
    assert settings["GATEMESH_NOTIFIER_TARGETS_FILE"] == "/t.toml"
    assert settings["GATEMESH_NOTIFIER_STATE_DIR"].startswith(str(plan.folder.root))
    assert service_programs(telling)[-1].argv[-1] == "gatemesh_notifier"


def test_no_policy_file_means_the_defaults(plan: StackPlan) -> None:
    """The health manager's own defaults hold."""
    manager = service_environment(plan)["health_manager"]
    assert manager["GATEMESH_HEALTH_MANAGER_POLICY_FILE"].endswith("policy.toml")
    assert plan.readiness_url("agent") == "http://127.0.0.1:9001/readyz"
