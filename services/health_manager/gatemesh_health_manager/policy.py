"""The rules of deciding as data: `policy.toml` read into frozen, checked values."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from gatemesh_common.errors import SettingsError
from gatemesh_common.invalid import Misfit, Place
from gatemesh_common.messages import CheckLevel, Identifier, Reason
from gatemesh_health_manager.own_conditions import AnyOwnCondition
from gatemesh_health_manager.playbooks import SHIPPED, Plan, PlaybookName, PlaybookRule
from gatemesh_health_manager.policy_capture import CapturePolicy
from gatemesh_health_manager.policy_places import explained, faults_of
from gatemesh_health_manager.policy_section import LONGEST_STREAK, Seconds, Section
from gatemesh_health_manager.roles import Role, role_faults

Points = Annotated[float, Field(ge=0, le=100)]


DEFAULT_POINTS: dict[CheckLevel, float] = {
    CheckLevel.L1: 5.0,
    CheckLevel.L2: 5.0,
    CheckLevel.L3: 15.0,
    CheckLevel.L4: 10.0,
    CheckLevel.L5: 20.0,
}


class PolicyError(SettingsError):
    """The policy file cannot be used; names the key, its line and what it must be."""


class ScorePolicy(Section):
    """How the health score falls and heals, and what it means for routing."""

    half_life_s: Seconds = 300.0
    """Time in which half of what the score lost is healed."""
    suspect_below: Points = 60.0
    clear_above: Points = 80.0
    readmit_score: Points = 90.0
    """Score of an instance that comes back from probation."""
    weight_floor: float = Field(default=0.1, gt=0, le=1)
    """Least routing weight of an instance in rotation."""
    hard_points: Points = 40.0
    """Points lost by a failure that is proof."""
    points: dict[CheckLevel, Points] = Field(default_factory=lambda: dict(DEFAULT_POINTS))
    """Points lost by a soft failure of each gate."""

    @field_validator("points", mode="before")
    @classmethod
    def complete_points(cls, value: object) -> object:
        """Keep the default of every gate that the file does not name."""
        return {**DEFAULT_POINTS, **value} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def keep_a_gap(self) -> "ScorePolicy":
        """Refuse thresholds that would make an instance flicker."""
        if self.clear_above <= self.suspect_below:
            raise ValueError("clear_above: must be greater than suspect_below")
        return self


class ConditionA(Section):
    """Many soft failures in a short time: drain, restart."""

    enabled: bool = True
    playbook: PlaybookName = "restart"
    levels: frozenset[CheckLevel] = frozenset({CheckLevel.L1, CheckLevel.L2})
    more_than: int = Field(default=5, ge=0, le=10_000)
    """Failures that are still tolerated; one more acts."""
    window_s: Seconds = 60.0
    min_prompts: int = Field(default=3, ge=1, le=10_000)
    max_per_prompt: int = Field(default=1, ge=1, le=10_000)
    """How often one prompt counts within the window."""


class ConditionB(Section):
    """One hard failure: out at once, confirm by probes, restart."""

    enabled: bool = True
    playbook: PlaybookName = "confirm"
    levels: frozenset[CheckLevel] = frozenset({CheckLevel.L3})
    confirm_timeout_s: Seconds = 20.0
    """Longest wait for the confirming probes; no answer counts as confirmed."""
    reconfirm_window_s: Seconds = 600.0
    """A second proof on the same life within this time after a refutation is not confirmed."""
    suite_faults: frozenset[Reason] = frozenset({Reason.NAN_LOGITS})
    """Faults of a probe suite's answers that are proof: no client's prompt can be to blame."""
    dump_timeout_s: float = Field(default=0.0, ge=0, le=3600)
    """Longest time for a core dump before the life ends, where executors take one; 0: none."""


class ConditionC(Section):
    """Failures of the shadow's comparison in a row: shift traffic away, drain, restart."""

    enabled: bool = True
    playbook: PlaybookName = "shift"
    levels: frozenset[CheckLevel] = frozenset({CheckLevel.L4})
    consecutive: int = Field(default=3, ge=1, le=LONGEST_STREAK)
    """Failures without a pass between that act."""
    min_prompts: int = Field(default=3, ge=1, le=LONGEST_STREAK)
    shift_weight: float = Field(default=0.1, gt=0, le=1)
    """Largest routing weight while traffic is shifted away."""
    shift_s: float = Field(default=10.0, ge=0, le=600)
    """How long traffic is shifted away before the drain begins."""


class ConditionD(Section):
    """Failed probe suites in a row: out at once, pull the weights anew, start."""

    enabled: bool = True
    playbook: PlaybookName = "replace"
    levels: frozenset[CheckLevel] = frozenset({CheckLevel.L5})
    consecutive: int = Field(default=2, ge=1, le=LONGEST_STREAK)
    """Failed suites without a passed one between that act."""


class EjectionBudget(Section):
    """How much of a pool may be out of rotation at once."""

    max_out_share: float = Field(default=0.5, ge=0, le=1)
    min_in_rotation: int = Field(default=1, ge=0, le=10_000)
    held_for_s: Seconds = 600.0
    """How long an incident waits for room before it expires."""


class FleetBrake(Section):
    """Most of a pool accused at once: nothing is done any more until a person has looked."""

    enabled: bool = True
    max_accused_share: float = Field(default=0.5, ge=0, le=1)
    """Share of a pool's instances that may be accused within the window; more, and it falls."""
    window_s: Seconds = 300.0
    min_accused: int = Field(default=3, ge=1, le=10_000)
    """Fewer never make it fall: two accusations in a small pool may well be two faults."""
    roll_back: Literal["off", "offer", "act"] = "offer"
    """What to do where most of the accused run a new model version: nothing, say so, or do it."""
    roll_back_within_s: float = Field(default=86_400.0, gt=0, le=2_592_000)
    """How long a model version counts as new."""


class DrainPolicy(Section):
    """How an instance is drained."""

    grace_s: float = Field(default=60.0, ge=0, le=3600)
    margin_s: Seconds = 15.0
    """Added to the grace: the wait for agents, the kill, the way of the report."""


class RestartPolicy(Section):
    """How often and how an instance is restarted."""

    restarts: int = Field(default=3, ge=0, le=1000)
    """Restarts of one instance within the window; then it is quarantined."""
    restart_window_s: Seconds = 3600.0
    back_off_s: tuple[Annotated[float, Field(ge=0, le=3600)], ...] = Field(
        default=(0.0, 5.0, 20.0, 80.0), min_length=1
    )
    """Delay before the first, second, ... restart within the window."""
    grace_s: float = Field(default=2.0, ge=0, le=3600)
    """Time that running requests get when a restart ends a life that was not drained."""
    start_timeout_s: float = Field(default=300.0, gt=0, le=3600)
    margin_s: Seconds = 15.0


class RepairPolicy(Section):
    """Repair in place, tried once in a life before it is ended."""

    enabled: bool = False
    conditions: frozenset[Literal["A", "B", "C", "D"]] = frozenset({"C"})
    """Conditions whose playbook begins with it."""
    timeout_s: Seconds = 60.0
    """Longest wait for its report."""


class ReplacePolicy(Section):
    """How weights are pulled anew; the start itself is bounded as a restart is."""

    pull_timeout_s: Seconds = 1800.0


class RollBackPolicy(Section):
    """How a model version is rolled back; the start itself is bounded as a restart is."""

    timeout_s: Seconds = 600.0
    """Longest time for the switch to the former version."""


class ProbePolicy(Section):
    """When instances in rotation are asked for the probe suite."""

    enabled: bool = True
    every_requests: int = Field(default=500, ge=1, le=10_000_000)
    """Client requests after which an instance is probed again."""
    every_s: Seconds = 300.0
    """Longest time without a probe; idle instances are probed too."""
    suspicion_failures: int = Field(default=3, ge=1, le=10_000)
    """Failures in condition A's window that call for a probe out of turn."""
    min_gap_s: float = Field(default=30.0, ge=0, le=86_400)
    """Shortest time between two probes of one instance."""
    retry_after_s: float = Field(default=2.0, ge=0, le=3600)
    """Time to the second suite after a failed one, whatever the gap."""
    answer_s: Seconds = 120.0
    """A probe that nobody answers in this time is no evidence."""
    max_parallel_share: float = Field(default=0.25, gt=0, le=1)
    """Largest share of the instances in rotation that are probed at once; one always may be."""


class ProbationPolicy(Section):
    """How long probes may take."""

    timeout_s: Seconds = 120.0
    """Without an answer in this time a fresh ticket is given out."""


class FlapDamping(Section):
    """An instance that comes back only to be taken out again is left to a person."""

    enabled: bool = True
    out_count: int = Field(default=4, ge=2, le=1000)
    """Taken out by a condition so often within the window, it is quarantined at once."""
    window_s: Seconds = 3600.0


class SlowStart(Section):
    """How an instance that comes back into rotation gets its traffic."""

    first_weight: float = Field(default=0.3, gt=0, le=1)
    """Routing weight at the moment of its return, where the score gives it more."""
    ramp_s: float = Field(default=30.0, ge=0, le=3600)
    """Time in which the weight rises to what the score gives it; 0 gives it that at once."""


class BaselinePolicy(Section):
    """How the pool's baseline is learnt from its healthy instances."""

    min_samples: int = Field(default=50, ge=10, le=1_000_000)
    """Answers of a kind before it has a baseline; until then gate L2 skips it as `warming`."""
    keep_samples: int = Field(default=20_000, ge=100, le=10_000_000)
    """Answers of one kind that count of one instance; beyond, old ones fade as new ones come."""
    settle_s: Seconds = 120.0
    """How long sketches wait; those of an instance that did not stay healthy are dropped."""
    max_share: float = Field(default=0.5, gt=0, le=1)
    """Largest share that one instance has in a baseline that others add to, too."""
    shadow_share: float = Field(default=0.0, ge=0, le=1)
    """Share of answers that agents send to the shadow at least."""
    forget_after_days: float = Field(default=30.0, gt=0, le=3650)
    """Age at which sketches that nothing was added to are deleted."""


class Limits(Section):
    """Bounds that keep everything finite."""

    incident_for_s: Seconds = 3600.0
    """Age at which an open incident is given up: the instance is quarantined."""
    command_timeout_s: Seconds = 30.0
    """Longest wait for the report of an eject or readmit command."""
    executor_silent_s: Seconds = 30.0
    """Without an observation for this long, an unanswered restart is sent again, not counted."""


class PoolPolicy(Section):
    """All rules of one pool."""

    mode: Literal["observe", "act"] = "act"
    """In `observe` everything is judged and told, and nothing is done."""
    playbooks: dict[PlaybookName, PlaybookRule] = Field(default_factory=lambda: dict(SHIPPED))
    """By name; in the file `[playbooks.NAME]`, for all pools."""
    score: ScorePolicy = ScorePolicy()
    condition_a: ConditionA = ConditionA()
    condition_b: ConditionB = ConditionB()
    condition_c: ConditionC = ConditionC()
    condition_d: ConditionD = ConditionD()
    own_conditions: tuple[AnyOwnCondition, ...] = ()
    probes: ProbePolicy = ProbePolicy()
    ejection: EjectionBudget = EjectionBudget()
    fleet_brake: FleetBrake = FleetBrake()
    drain: DrainPolicy = DrainPolicy()
    restart: RestartPolicy = RestartPolicy()
    repair: RepairPolicy = RepairPolicy()
    replace: ReplacePolicy = ReplacePolicy()
    roll_back: RollBackPolicy = RollBackPolicy()
    probation: ProbationPolicy = ProbationPolicy()
    flap: FlapDamping = FlapDamping()
    slow_start: SlowStart = SlowStart()
    baseline: BaselinePolicy = BaselinePolicy()
    capture: CapturePolicy = CapturePolicy()
    limits: Limits = Limits()

    @field_validator("playbooks", mode="before")
    @classmethod
    def complete_playbooks(cls, value: object) -> object:
        """Keep every shipped playbook that the file does not name."""
        return {**SHIPPED, **value} if isinstance(value, dict) else value

    def plan(self, name: str) -> Plan:
        """Return a playbook by its name."""
        return Plan(name, self.playbooks[name].steps)

    @field_validator("own_conditions")
    @classmethod
    def name_each_once(cls, value: tuple[AnyOwnCondition, ...]) -> tuple[AnyOwnCondition, ...]:
        """Refuse two conditions of one name."""
        names = [rule.name for rule in value]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"name: {', '.join(twice)} stands there twice")
        return value


class Policy(Section):
    """The rules of every pool, the defaults and what single pools change; and who may ask."""

    SECTIONS: ClassVar[tuple[str, ...]] = ("defaults", "pools", "roles", "operators")

    defaults: PoolPolicy = PoolPolicy()
    pools: dict[str, PoolPolicy] = Field(default_factory=dict)
    roles: dict[Identifier, Role] = Field(default_factory=dict)
    """What the holders of each role may ask for."""
    operators: dict[Identifier, frozenset[str]] | None = None
    """Roles by the broker's user; absent, whoever may publish may ask for everything."""

    @property
    def version(self) -> str:
        """Return a short hash of the rules; the same rules have the same version."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:12]

    def canonical(self) -> str:
        """Return the rules as JSON with sorted keys, the form that is stored and hashed."""
        return json.dumps(_sorted(self.model_dump(mode="json")), sort_keys=True)

    def for_pool(self, pool: str) -> PoolPolicy:
        """Return the rules of one pool."""
        return self.pools.get(pool, self.defaults)


def load_policy(path: Path) -> Policy:
    """Read the policy file.

    Raises:
        PolicyError: it is not there, is no TOML, or a key is unknown or out of bounds.
    """
    return parse_policy(read_policy(path), path.name)


def read_policy(path: Path) -> str:
    """Return the text of the policy file.

    Raises:
        PolicyError: it cannot be read, or is no text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise PolicyError(
            f"{path.name}: cannot be read ({error.strerror}); set "
            "GATEMESH_HEALTH_MANAGER_POLICY_FILE to a readable policy.toml"
        ) from error
    except UnicodeDecodeError as error:
        raise PolicyError(f"{path.name}: no UTF-8 text: {error}") from error


def parse_policy(text: str, name: str = "policy.toml") -> Policy:
    """Turn the text of a policy file into rules; a pool inherits what it does not name.

    Raises:
        PolicyError: as `load_policy` does.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{name}: no valid TOML: {error}") from error
    try:
        policy = Policy.model_validate(_inherited(data))
    except ValidationError as error:
        raise PolicyError(explained(name, text, faults_of(error))) from None
    faults: list[Misfit] = [
        *unknown_playbooks(policy),
        *role_faults(policy.roles, policy.operators),
    ]
    if faults:
        raise PolicyError(explained(name, text, faults))
    return policy


def _inherited(data: dict[str, Any]) -> dict[str, Any]:
    """Return what a file says with every pool whole, and playbooks where pools inherit them."""
    defaults, pools = data.get("defaults", {}), data.get("pools", {})
    if not isinstance(defaults, dict) or not isinstance(pools, dict):
        return data
    rest = {key: value for key, value in data.items() if key != "playbooks"}
    if "playbooks" in data:
        defaults = defaults | {"playbooks": data["playbooks"]}
    return rest | {
        "defaults": defaults,
        "pools": {pool: _merged(defaults, own) for pool, own in pools.items()},
    }


def unknown_playbooks(policy: Policy) -> list[Misfit]:
    """Return where a condition names a playbook that there is not."""
    pools: list[tuple[Place, PoolPolicy]] = [(("defaults",), policy.defaults)]
    pools += [(("pools", name), rules) for name, rules in policy.pools.items()]
    return [
        ((*place, *where, "playbook"), no_playbook(name, rules))
        for place, rules in pools
        for where, name in _named_playbooks(rules)
        if name not in rules.playbooks
    ]


def no_playbook(name: str, rules: PoolPolicy) -> str:
    """Say that there is no such playbook, and which there are."""
    return f"there is no playbook {name!r}; known: {', '.join(sorted(rules.playbooks))}"


def _named_playbooks(rules: PoolPolicy) -> list[tuple[Place, str]]:
    own = enumerate(rules.own_conditions)
    return [
        (("condition_a",), rules.condition_a.playbook),
        (("condition_b",), rules.condition_b.playbook),
        (("condition_c",), rules.condition_c.playbook),
        (("condition_d",), rules.condition_d.playbook),
        *((("own_conditions", number), rule.playbook) for number, rule in own),
    ]


def _merged(base: Mapping[str, Any], own: object) -> object:
    """Return `own` laid over `base`, table by table."""
    if not isinstance(own, Mapping):
        return own
    merged = dict(base)
    for key, value in own.items():
        below = base.get(key)
        merged[key] = _merged(below, value) if isinstance(below, Mapping) else value
    return merged


def _sorted(value: Any) -> Any:
    """Return lists of names in a fixed order, so that equal rules hash alike."""
    if isinstance(value, dict):
        # The order of steps is what they say.
        return {key: inner if key == "steps" else _sorted(inner) for key, inner in value.items()}
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return sorted(value)
    return value
