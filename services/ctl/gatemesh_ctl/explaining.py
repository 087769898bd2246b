"""Why an incident was opened and what became of it, in words with numbers (pure)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from gatemesh_ctl.explain_facts import Facts
from gatemesh_ctl.store import Row

HOUSE = {"A": "condition_a", "B": "condition_b", "C": "condition_c", "D": "condition_d"}
WITHOUT_RULE = {
    "exit": "the process ended, or came up again, without having been told to",
    "probes": "the probes that had to pass before it serves failed, or went unanswered",
    "overdue": "what was ordered or asked for was not answered in time",
    "operator": "an operator asked for it",
    "roll_back": "the fleet brake's rule rolls a new model version back",
}
MOST_VERDICTS = 20
SERVING = ("healthy", "suspect")
AT_ONCE_S = 1.0

Section = tuple[str, list[str]]
"""A heading and its sentences."""


def explain(facts: Facts) -> dict[str, Any]:
    """Return the explanation: sections in words, and the numbers behind them."""
    evidence = evidence_of(facts)
    sections: list[Section] = [
        ("why", why(facts, evidence)),
        ("verdicts", [verdict_words(row) for row in evidence[-MOST_VERDICTS:]]),
        ("brakes", brakes(facts)),
        ("steps", [command_words(row, facts.opened_at) for row in facts.commands]),
        ("states", states(facts)),
        ("end", [ending(facts)]),
    ]
    incident = facts.incident
    return {
        "incident": incident,
        "rule": rule_of(facts),
        "evidence": {
            "failures": len(evidence),
            "prompts": len({row.get("prompt_key") for row in evidence}),
            "verdicts": evidence,
        },
        "commands": list(facts.commands),
        "transitions": list(facts.transitions),
        "words": {title: lines for title, lines in sections if lines},
    }


def rule_of(facts: Facts) -> Mapping[str, Any]:
    """Return the rule that was broken as its version of the policy has it; empty without one."""
    name = facts.incident["condition"]
    if name in HOUSE:
        rule: Mapping[str, Any] = facts.rules.get(HOUSE[name], {})
        return rule
    own = facts.rules.get("own_conditions", ())
    return next((one for one in own if one.get("name") == name), {})


def why(facts: Facts, evidence: Sequence[Row]) -> list[str]:
    """Say which condition was broken, by which rules, and what had been seen."""
    incident = facts.incident
    name, rule = incident["condition"], rule_of(facts)
    asks = WITHOUT_RULE.get(name) or rule_words(name, rule)
    lines = [
        f"{clock(incident['opened_at'])} {incident['instance_id']} (life {incident['incarnation']}"
        f", pool {incident['pool']}): {incident['cause']}.",
        f"Condition {name} of policy version {incident['policy_version']}: {asks}.",
    ]
    if evidence:
        prompts = len({row.get("prompt_key") for row in evidence})
        reasons = Counter(row["reason"] for row in evidence).most_common()
        told = ", ".join(f"{count} x {reason}" for reason, count in reasons)
        lines.append(
            f"Seen: {counted(len(evidence), 'failure')} of {counted(prompts, 'prompt')} ({told})."
        )
    lines += [asked_words(row) for row in facts.requests if name == "operator"]
    steps = ", ".join(incident.get("steps") or ())
    lines.append(f"Playbook {incident['playbook']}{f': {steps}' if steps else ''}.")
    return lines


def rule_words(name: str, rule: Mapping[str, Any]) -> str:
    """Word a rule of the policy with its numbers."""
    if not rule:
        return "its rule is no longer stored"
    levels = ", ".join(sorted(rule.get("levels", ()))) or "all gates"
    if name == "B":
        faults = ", ".join(rule.get("suite_faults", ()))
        return f"one hard failure of {levels}, or a probe suite with {faults}"
    if "consecutive" in rule:
        prompts = rule.get("min_prompts")
        of = f", of at least {counted(prompts, 'prompt')}" if prompts else ""
        return f"{counted(rule['consecutive'], 'failure')} of {levels} in a row{of}"
    if rule.get("kind", "count") == "count":
        return (
            f"more than {counted(rule['more_than'], 'failure')} of {levels} within "
            f"{rule['window_s']:g} s, of at least {counted(rule['min_prompts'], 'prompt')}, "
            f"one prompt counting {rule['max_per_prompt']} at most"
        )
    shown = {key: value for key, value in rule.items() if key not in ("name", "playbook")}
    return ", ".join(f"{key} {value}" for key, value in shown.items() if value not in (None, []))


def evidence_of(facts: Facts) -> list[Row]:
    """Return the failures that the condition goes by, as far as they are stored."""
    rule = rule_of(facts)
    matching = [row for row in facts.verdicts if matches(facts.incident["condition"], rule, row)]
    # What broke a graver condition later is younger than the incident that it took over.
    until = facts.opened_at
    if matching and all(moment(row) > until for row in matching):
        until = moment(matching[-1])
    early = [row for row in matching if moment(row) <= until]
    if facts.incident["condition"] == "B":
        return early[-1:]
    if "consecutive" in rule:
        return last_row(early, facts.verdicts, rule)
    if "window_s" not in rule:
        return []
    since = until - timedelta(seconds=rule["window_s"])
    return once_per_prompt([row for row in early if moment(row) > since], rule)


def matches(name: str, rule: Mapping[str, Any], row: Row) -> bool:
    """True for a failure that a rule looks at; a request's own fault counts for nothing."""
    if row["outcome"] != "failed" or row.get("attribution") == "request":
        return False
    if name == "B":
        proof = row["check_level"] == "L5" and bool(
            proofs_in(row) & set(rule.get("suite_faults", ()))
        )
        return proof or (row["hard"] and row["check_level"] in rule.get("levels", ()))
    right_reason = not rule.get("reasons") or row["reason"] in rule["reasons"]
    right_kind = rule.get("hard") is None or row["hard"] is rule["hard"]
    return row["check_level"] in rule.get("levels", ()) and right_reason and right_kind


def proofs_in(row: Row) -> set[str]:
    """Return what was at fault in the answers of a probe suite."""
    faults = (row.get("details") or {}).get("faults")
    values = faults.values() if isinstance(faults, dict) else ()
    return {value for value in values if isinstance(value, str)}


def last_row(
    failures: Sequence[Row], all_rows: Iterable[Row], rule: Mapping[str, Any]
) -> list[Row]:
    """Return the failures since the last pass of these gates."""
    if not failures:
        return []
    end = moment(failures[-1])
    passes = [
        moment(row)
        for row in all_rows
        if row["outcome"] == "passed" and row["check_level"] in rule["levels"] and moment(row) < end
    ]
    return [row for row in failures if not passes or moment(row) > max(passes)]


def once_per_prompt(failures: Iterable[Row], rule: Mapping[str, Any]) -> list[Row]:
    """Return the failures without what one prompt has too many of."""
    seen: Counter[object] = Counter()
    kept = []
    for row in failures:
        seen[row.get("prompt_key")] += 1
        if seen[row.get("prompt_key")] <= rule.get("max_per_prompt", 1):
            kept.append(row)
    return kept


def verdict_words(row: Row) -> str:
    """Word one verdict with its numbers."""
    hard = ", hard" if row["hard"] else ""
    return (
        f"{clock(row['timestamp'])} {row['check_level']} {row['reason']}{hard}"
        f"{score_words(row['score'], row['threshold'])}, request {row['request_id']}"
        f"{span_words(row.get('span'))}"
    )


def score_words(score: float | None, threshold: float | None) -> str:
    """Word a score against its threshold."""
    if score is None:
        return ""
    if threshold is None:
        return f", score {score:.3g}"
    times = f" ({score / threshold:.3g} times)" if threshold and score > threshold > 0 else ""
    return f", score {score:.3g}, threshold {threshold:.3g}{times}"


def span_words(span: object) -> str:
    """Word where in the answer it was."""
    if not isinstance(span, dict):
        return ""
    for unit, plural in (("char", "characters"), ("token", "tokens")):
        begin, end = span.get(f"{unit}_start"), span.get(f"{unit}_end")
        if begin is not None and end is not None:
            return f", {plural} {begin} to {end}"
    return ""


def brakes(facts: Facts) -> list[str]:
    """Say what each brake had to say, with its numbers."""
    if not facts.rules:
        return ["The rules of that version are no longer stored."]
    told = [observed(facts), fleet_brake(facts), ejection(facts), flap(facts), restarts(facts)]
    return [line for line in (*told, waiting(facts)) if line]


def observed(facts: Facts) -> str:
    """Say that nothing was done on purpose."""
    if facts.incident.get("mode") != "observe":
        return ""
    return f"Observe mode: nothing is done; it would: {facts.incident['would']}."


def fleet_brake(facts: Facts) -> str:
    """Say how many were accused, and whether the fleet brake fell."""
    rule, pool = facts.rules.get("fleet_brake", {}), facts.pool
    if not rule.get("enabled") or pool is None:
        return ""
    since = facts.opened_at - timedelta(seconds=rule["window_s"])
    accused = {
        row["instance_id"]
        for row in facts.others
        if row["opened_at"] > since and row["condition"] not in WITHOUT_RULE
    }
    total = len(facts.states_before) or pool["instances"]
    limit = f"{rule['max_accused_share']:g} of the pool, and {rule['min_accused']} at least"
    fell = pool["braked_at"] is not None and pool["braked_at"] >= facts.opened_at
    end = f"it fell at {clock(pool['braked_at'])}: {pool['brake_reason']}" if fell else "it was off"
    if pool["braked"] and not fell:
        end = f"it is on since {clock(pool['braked_at'])}: {pool['brake_reason']}"
    return (
        f"Fleet brake: {len(accused)} of {total} accused within {rule['window_s']:g} s "
        f"(it falls at more than {limit}); {end}."
    )


def ejection(facts: Facts) -> str:
    """Say how many served, and whether one more could go."""
    rule, states_before = facts.rules.get("ejection", {}), facts.states_before
    mine = states_before.get(facts.incident["instance_id"])
    if not rule or mine not in SERVING:
        return "Ejection budget: not asked, it did not serve." if rule else ""
    total = len(states_before)
    left = sum(state in SERVING for state in states_before.values()) - 1
    room = left >= rule["min_in_rotation"] and total - left <= rule["max_out_share"] * total
    return (
        f"Ejection budget: {left + 1} of {total} served before; {left} would be left "
        f"(at least {rule['min_in_rotation']}) and {total - left} out (at most "
        f"{rule['max_out_share']:g} of all): {'there was room' if room else 'there was no room'}."
    )


def flap(facts: Facts) -> str:
    """Say how often it was taken out lately."""
    rule = facts.rules.get("flap", {})
    if not rule.get("enabled"):
        return ""
    since = facts.opened_at - timedelta(seconds=rule["window_s"])
    outs = sum(
        row["instance_id"] == facts.incident["instance_id"]
        and row["opened_at"] > since
        and row["condition"] not in WITHOUT_RULE
        for row in facts.others
    )
    return (
        f"Flap damping: accused {counted(outs, 'time')} within {rule['window_s']:g} s; "
        f"taken out {rule['out_count']} times it is quarantined."
    )


def restarts(facts: Facts) -> str:
    """Say how much of the restart budget was used, and what the back-off was."""
    rule = facts.rules.get("restart", {})
    mine = [row for row in facts.commands if is_start(row)]
    if not rule or not mine:
        return ""
    used = used_by(facts, mine[-1])
    return (
        f"Restart budget: {used} of {rule['restarts']} used within {rule['restart_window_s']:g} s, "
        f"back-off {back_off_s(facts, mine[-1], used):g} s."
    )


def is_start(row: Row) -> bool:
    """True for a command that begins a life."""
    return row["action"] in ("restart", "replace", "roll_back")


def used_by(facts: Facts, start: Row) -> int:
    """Return how much of the restart budget was used within the window that ends with a start."""
    window_s = facts.rules.get("restart", {}).get("restart_window_s", 0)
    since = start["issued_at"] - timedelta(seconds=window_s)
    return sum(since < row["issued_at"] <= start["issued_at"] for row in facts.restarts)


def back_off_s(facts: Facts, start: Row, used: int) -> float:
    """Return for how long a start waited for its back-off: as long as the rule says, no longer.

    It was decided with the transition before it; brakes and other commands may have held it, too.
    """
    delays = facts.rules.get("restart", {}).get("back_off_s") or [0]
    by_rule: float = delays[min(max(used, 1), len(delays)) - 1]
    decided = [row["at"] for row in facts.transitions if row["at"] <= start["issued_at"]]
    if not decided:
        return seconds(start["issued_at"], start["available_at"])
    return min(by_rule, seconds(decided[-1], start["available_at"]))


def waiting(facts: Facts) -> str:
    """Say how long it took until something was done."""
    if not facts.commands:
        status = facts.incident["status"]
        return "It is held: no command was sent." if status == "held" else "No command was sent."
    first = facts.commands[0]
    waited_s = seconds(facts.opened_at, first["issued_at"])
    if waited_s < AT_ONCE_S:
        return f"Nothing held it: {first['action']} was ordered {waited_s:.2f} s after the opening."
    cause = cause_of_wait(facts, first)
    return f"{first['action']} was ordered {waited_s:.1f} s after the opening: {cause}."


def cause_of_wait(facts: Facts, first: Row) -> str:
    """Word what the first command waited for."""
    shift_s = facts.rules.get("condition_c", {}).get("shift_s", 0)
    if "shift" in (facts.incident.get("steps") or ()):
        return f"traffic was shifted away first ({shift_s:g} s)"
    backed_off = back_off_s(facts, first, used_by(facts, first)) if is_start(first) else 0
    return f"it waited for its back-off ({backed_off:g} s)" if backed_off else "it was held"


def command_words(row: Row, opened_at: datetime) -> str:
    """Word one command: when, its steps and how long each took, how it ended."""
    steps = ", ".join(f"{one['step']} {one['duration_s']:.2f} s" for one in row["steps"])
    took = row["duration_s"]
    if took is None and row["ended_at"] is not None:
        took = seconds(row["available_at"], row["ended_at"])
    parts = [
        f"{seconds(opened_at, row['issued_at']):+.2f} s {row['action']} (fence {row['fence']})",
        row["status"] + (f" in {took:.2f} s" if took is not None else ""),
        steps,
        row["reason"] or "",
        "running requests outlasted the grace and were killed" if row["killed"] else "",
    ]
    return ": ".join(part for part in parts[:2]) + "".join(
        f"; {part}" for part in parts[2:] if part
    )


def states(facts: Facts) -> list[str]:
    """Say which states it went through, by what, and for how long it stayed in each."""
    ends = [row["at"] for row in facts.transitions[1:]]
    lines = []
    for number, row in enumerate(facts.transitions):
        stayed = f" for {seconds(row['at'], ends[number]):.2f} s" if number < len(ends) else ""
        lines.append(
            f"{seconds(facts.opened_at, row['at']):+.2f} s {row['before_state']} -> "
            f"{row['after_state']}{stayed} ({row['trigger']}, score {row['score']:.1f})"
        )
    return lines


def ending(facts: Facts) -> str:
    """Say how it ended, or that it has not."""
    incident = facts.incident
    if incident["ended_at"] is None:
        return f"Not over: {incident['status']} for {incident['duration_s']:.1f} s."
    dump = f" Core dump: {incident['core_dump']}." if incident.get("core_dump") else ""
    return (
        f"{incident['status'].capitalize()} after {incident['duration_s']:.1f} s: "
        f"{incident['reason']}.{dump}"
    )


def asked_words(row: Row) -> str:
    """Word who asked."""
    user = f", the broker's user {row['user_id']}" if row.get("user_id") else ""
    because = f", because: {row['reason']}" if row["reason"] else ""
    return f"{row['requested_by']}{user} asked for {row['action']}{because}."


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def moment(row: Row) -> datetime:
    """Return when a verdict counts."""
    counts: datetime = row.get("counted_at") or row["received_at"]
    return counts


def seconds(begin: datetime, end: datetime) -> float:
    """Return the seconds between two moments."""
    return (end - begin).total_seconds()


def clock(at: datetime) -> str:
    """Return a moment as people read it, in their own zone."""
    return f"{at.astimezone():%H:%M:%S}"
