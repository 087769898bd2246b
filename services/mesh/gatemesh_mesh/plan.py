"""What a local stack is made of: engines, services, and the settings each of them gets."""

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gatemesh_mesh import models_env
from gatemesh_mesh.ports import LOOPBACK
from gatemesh_mesh.programs import ProgramSpec
from gatemesh_mesh.state import StateFolder

POOL = "default"
CONSOLE_PERSON = "local"
"""In whose name the console of a local stack asks."""
MODEL_VERSION = "sim-1"
ENGINE_GRACE_S = 60
ENGINE_SHUTDOWN_S = 50
"""Below the grace: an engine ends its requests itself before it would be killed."""
SERVICES = ("health_manager", "executor", "agent", "shadow", "console")
"""In the order in which they are started."""

NOTIFIER = "notifier"
"""Comes last, and only where somebody is to be told."""

SERVICE_PORTS = (
    *("agent", "agent_admin", "health_manager_admin", "executor_admin", "shadow_admin"),
    *("console", "console_admin"),
    "notifier_admin",
)


@dataclass(frozen=True)
class Engine:
    """One engine of the stack: how it is run, and where it answers."""

    instance_id: str
    base_url: str
    program: ProgramSpec
    pool: str = POOL
    model_version: str = MODEL_VERSION
    is_simulated: bool = True
    """A simulated engine is fast; a real one on a few cores must be asked sparingly."""


@dataclass(frozen=True)
class Addresses:
    """Where the broker and the database of a stack are, and who may use them."""

    amqp_url: str
    database_url: str
    management_url: str | None
    """None when the broker is not ours."""
    service_amqp_urls: Mapping[str, str] = field(default_factory=dict)
    """By service: the broker's address with its own login; others use the one for all."""

    def broker_of(self, service: str) -> str:
        """Return the broker's address as one service is given it."""
        return self.service_amqp_urls.get(service, self.amqp_url)


@dataclass(frozen=True)
class StackPlan:
    """A whole stack, before anything of it runs."""

    folder: StateFolder
    addresses: Addresses
    ports: Mapping[str, int]
    engines: Sequence[Engine]
    supervisor_url: str
    supervisor_user: str
    supervisor_password: str
    fingerprint_key: str
    console_token: str
    policy_file: Path | None
    notifier: Mapping[str, str] | None = None
    """The notifier's own settings; None where nobody is to be told."""
    guard: str | None = None
    """What the agent does about bad answers; None: what its own setting says."""

    @property
    def services(self) -> tuple[str, ...]:
        """Our services, in the order in which they are started."""
        return SERVICES if self.notifier is None else (*SERVICES, NOTIFIER)

    @property
    def agent_url(self) -> str:
        """Where clients send their requests."""
        return f"http://{LOOPBACK}:{self.ports['agent']}"

    @property
    def console_url(self) -> str:
        """Where people look."""
        return f"http://{LOOPBACK}:{self.ports['console']}"

    @property
    def instances_file(self) -> Path:
        """The list of engines that the executor reads."""
        return self.folder.root / "instances.toml"

    def admin_url(self, service: str) -> str:
        """Where a service tells of itself: `/metrics`, `/readyz` and so on."""
        return f"http://{LOOPBACK}:{self.ports[f'{service}_admin']}"

    def readiness_url(self, service: str) -> str:
        """Where a service says whether it is ready."""
        return f"{self.admin_url(service)}/readyz"


def simulated_engines(folder: StateFolder, ports: Sequence[int]) -> list[Engine]:
    """Return one simulated engine per port."""
    return [_simulated(folder, f"engine-{number}", port) for number, port in enumerate(ports)]


def _simulated(folder: StateFolder, name: str, port: int) -> Engine:
    options = {
        "name": name,
        "port": str(port),
        "model": "sim",
        "tokens-per-s": "60",
        "time-to-first-token-s": "0.02",
        "shutdown-timeout": str(ENGINE_SHUTDOWN_S),
        "chaos-file": str(folder.root / "drills" / f"{name}.json"),
    }
    flags = [part for flag, value in options.items() for part in (f"--{flag}", value)]
    argv = (sys.executable, "-m", "gatemesh_engine_sim", *flags)
    return Engine(name, f"http://{LOOPBACK}:{port}", engine_program(folder, name, argv))


def engine_program(
    folder: StateFolder,
    name: str,
    argv: Sequence[str],
    environment: Mapping[str, str] | None = None,
) -> ProgramSpec:
    """Return an engine as a program: SIGTERM to the server alone, SIGKILL to its whole group.

    It is never started again by supervisord: a dead engine exits with code 0, and only the
    executor may start it, through probation.
    """
    return ProgramSpec(
        name=name,
        argv=tuple(argv),
        log_file=folder.logs / f"{name}.log",
        environment=environment or {},
        cwd=folder.root,
        stop_wait_s=ENGINE_GRACE_S,
    )


def service_programs(plan: StackPlan) -> list[ProgramSpec]:
    """Return our services as programs, in the order in which they are started."""
    environments = service_environment(plan)
    python = dict.fromkeys(plan.services, sys.executable)
    if models_env.is_installed(plan.folder):
        python["shadow"] = str(models_env.layout_of(plan.folder).python)
        environments["shadow"] |= models_env.environment_of()
    return [
        ProgramSpec(
            name=service,
            argv=(python[service], "-m", f"gatemesh_{service}"),
            log_file=plan.folder.logs / f"{service}.log",
            environment=environments[service],
            cwd=plan.folder.root,
            restarts=True,
        )
        for service in plan.services
    ]


def service_environment(plan: StackPlan) -> dict[str, dict[str, str]]:
    """Return the settings of each service; the one place that knows them all."""
    ports = plan.ports
    manager = {
        "GATEMESH_DATABASE_URL": plan.addresses.database_url,
        "GATEMESH_HEALTH_MANAGER_ADMIN_PORT": str(ports["health_manager_admin"]),
        "GATEMESH_HEALTH_MANAGER_SIGNING_KEY_FILE": str(plan.folder.signing_key_file),
        "GATEMESH_HEALTH_MANAGER_SIGNING_KEY": "",
    }
    if plan.policy_file:
        manager["GATEMESH_HEALTH_MANAGER_POLICY_FILE"] = str(plan.policy_file)
    executor = {
        "GATEMESH_EXECUTOR_SUPERVISOR_URL": plan.supervisor_url,
        "GATEMESH_EXECUTOR_SUPERVISOR_USER": plan.supervisor_user,
        "GATEMESH_EXECUTOR_SUPERVISOR_PASSWORD": plan.supervisor_password,
        "GATEMESH_EXECUTOR_INSTANCES_FILE": str(plan.instances_file),
        "GATEMESH_EXECUTOR_TRUSTED_KEYS_FILE": str(plan.folder.trusted_keys_file),
        "GATEMESH_EXECUTOR_TRUSTED_KEYS": "",
        "GATEMESH_EXECUTOR_ADMIN_PORT": str(ports["executor_admin"]),
    }
    agent = {
        "GATEMESH_AGENT_ID": "agent-0",
        "GATEMESH_AGENT_POOL": POOL,
        "GATEMESH_AGENT_MODE": "gateway",
        "GATEMESH_AGENT_HOST": LOOPBACK,
        "GATEMESH_AGENT_PORT": str(ports["agent"]),
        "GATEMESH_AGENT_ADMIN_PORT": str(ports["agent_admin"]),
        "GATEMESH_AGENT_INSTANCES": ",".join(
            f"{engine.instance_id}={engine.base_url}" for engine in plan.engines
        ),
        "GATEMESH_AGENT_SPOOL_DIR": str(plan.folder.spool / "agent-0"),
        "GATEMESH_AGENT_FINGERPRINT_KEY": plan.fingerprint_key,
    }
    if plan.guard is not None:
        agent["GATEMESH_AGENT_GUARD"] = plan.guard
    if (out := figures_target(plan.engines)) is not None:
        agent["GATEMESH_AGENT_PLUGIN_SOCKET"] = out
    own = {
        "health_manager": manager,
        "executor": executor,
        "agent": agent,
        "shadow": shadow_environment(plan),
        "console": console_environment(plan),
    }
    if plan.notifier is not None:
        own[NOTIFIER] = notifier_environment(plan, plan.notifier)
    return {
        service: {"GATEMESH_AMQP_URL": plan.addresses.broker_of(service), **settings}
        for service, settings in own.items()
    }


def console_environment(plan: StackPlan) -> dict[str, str]:
    """Return the console's own settings; it is told a hash, and the token to people alone."""
    digest = hashlib.sha256(plan.console_token.encode()).hexdigest()
    return {
        "GATEMESH_DATABASE_URL": plan.addresses.database_url,
        "GATEMESH_CONSOLE_HOST": LOOPBACK,
        "GATEMESH_CONSOLE_PORT": str(plan.ports["console"]),
        "GATEMESH_CONSOLE_ADMIN_PORT": str(plan.ports["console_admin"]),
        "GATEMESH_CONSOLE_TOKENS": f"{CONSOLE_PERSON} operator {digest}",
    }


def shadow_environment(plan: StackPlan) -> dict[str, str]:
    """Return the shadow's own settings."""
    settings = {
        "GATEMESH_SHADOW_ADMIN_PORT": str(plan.ports["shadow_admin"]),
        "GATEMESH_SHADOW_STATE_DIR": str(plan.folder.root / "shadow"),
    }
    if all(engine.is_simulated for engine in plan.engines):
        return settings
    sparingly = {
        "GATEMESH_SHADOW_AT_ONCE_PER_INSTANCE": "1",
        "GATEMESH_SHADOW_PER_INSTANCE_PER_S": "0.5",
        "GATEMESH_SHADOW_VERIFIER_PER_S": "0.2",
        # Engines that know drills report processed figures.
        "GATEMESH_SHADOW_OWN_LOGPROBS": "processed",
    }
    return settings | sparingly


def notifier_environment(plan: StackPlan, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the notifier's own settings."""
    return {
        "GATEMESH_NOTIFIER_ADMIN_PORT": str(plan.ports["notifier_admin"]),
        "GATEMESH_NOTIFIER_STATE_DIR": str(plan.folder.root / "notifier"),
        **settings,
    }


def figures_target(engines: Sequence[Engine]) -> str | None:
    """Return where the engines' plugins send exact figures; None where none has one."""
    found = {engine.program.environment.get("GATEMESH_PLUGIN_OUT") for engine in engines}
    return next((out for out in sorted(filter(None, found)) if out.startswith("unix:")), None)


def render_instances(engines: Sequence[Engine]) -> str:
    """Return the executor's list of instances, as TOML."""
    return "\n".join(_render_instance(engine) for engine in engines)


def _render_instance(engine: Engine) -> str:
    fields = {
        "instance_id": engine.instance_id,
        "pool": engine.pool,
        "base_url": engine.base_url,
        "program": engine.program.name,
        "model_version": engine.model_version,
    }
    return "\n".join(["[[instances]]", *(f'{key} = "{text}"' for key, text in fields.items()), ""])
