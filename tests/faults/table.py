"""The scenarios of the fault suite, as data."""

from tests.contract.executor.balancer_rigs import needs
from tests.faults import (
    balancer_events,
    broker_events,
    client_events,
    clock_events,
    engine_events,
    executor_events,
    kubernetes_events,
    manager_events,
    message_events,
    rescue_events,
    weights_events,
)
from tests.faults.acting import VICTIM
from tests.faults.checks import (
    agent_told_all,
    brake_fell,
    clients_saw_nothing,
    enough_kept_serving,
    nobody_was_touched,
    only_ejected,
    restarted_once,
)
from tests.faults.scenario import Scenario
from tests.faults.site import POLICY, WITH_BRAKE

UNHARMED = (clients_saw_nothing, agent_told_all, nobody_was_touched)
REPAIRED = (clients_saw_nothing, agent_told_all, restarted_once(VICTIM))
FEW_RESTARTS = POLICY.replace("restarts = 1000", f"restarts = {executor_events.RESTARTS}")
SHORT_GRACE = POLICY + "[defaults.drain]\ngrace_s = 3\n"
SHORT_DRAIN = SHORT_GRACE + "margin_s = 5\n"
NO_RAMP = "[defaults.slow_start]\nramp_s = 0\n"
AT_ONCE = POLICY + NO_RAMP
"""So that an instance that was restarted by the scenario before gets streams as the others do."""
SHORT_COMMANDS = POLICY + "[defaults.limits]\ncommand_timeout_s = 8\n"

BROKER = (
    Scenario(
        "broker_killed",
        "0 lost; clients see nothing; fresh events in SQL within 30 s of its return",
        broker_events.kill_broker,
        UNHARMED,
    ),
    Scenario(
        "cut_before_the_confirmation",
        "0 lost, repetitions applied once; clients see nothing",
        broker_events.cut_before_the_confirmation,
        UNHARMED,
    ),
    Scenario(
        "broker_black_holed_30_s",
        "0 lost; clients see nothing; fresh events in SQL within 30 s of its end",
        broker_events.swallow_everything,
        UNHARMED,
        in_every_run=False,
    ),
    Scenario(
        "broker_alarm_60_s",
        "publishers wait, 0 lost; clients see nothing; fresh events in SQL within 30 s of its end",
        broker_events.raise_memory_alarm,
        UNHARMED,
        in_every_run=False,
    ),
    Scenario(
        "broker_alarm_of_its_disk",
        "publishers wait, 0 lost; clients see nothing; fresh events in SQL within 30 s of its end",
        broker_events.raise_disk_alarm,
        UNHARMED,
        in_every_run=False,
    ),
    Scenario(
        "verdicts_unroutable",
        "0 lost; the binding comes back by itself; clients see nothing",
        broker_events.unbind_verdicts,
        UNHARMED,
        # Samples under way in the shadow: its verdicts on them could not be routed.
        dead_letters=None,
    ),
)
MESSAGES = (
    Scenario(
        "everything_three_times_and_shuffled",
        "one restart, nothing applied twice, 0 lost",
        message_events.repeat_everything,
        REPAIRED,
        in_every_run=False,
    ),
    Scenario(
        "poison_messages",
        "bad JSON, unknown schema, 10 MB: each among the dead letters; all others flow on",
        message_events.send_poison,
        UNHARMED,
        dead_letters=len(message_events.POISON),
    ),
    Scenario(
        "dead_letters_full",
        "reading goes on; 0 of the readable lost",
        message_events.fill_dead_letters,
        UNHARMED,
        dead_letters=None,
    ),
    Scenario(
        "old_and_new_schema",
        "messages of an old, the present and a future release are all applied once",
        message_events.mix_schemas,
        UNHARMED,
    ),
)
MANAGER = (
    Scenario(
        "manager_killed_before_the_commit",
        "0 lost, nothing twice; deciding goes on",
        manager_events.kill_before_the_commit,
        UNHARMED,
    ),
    Scenario(
        "manager_killed_after_the_commit",
        "one restart, 0 lost; deciding goes on",
        manager_events.kill_after_the_commit,
        REPAIRED,
        in_every_run=False,
    ),
    Scenario(
        "two_managers_one_killed",
        "one restart, 0 lost",
        manager_events.run_two,
        REPAIRED,
    ),
    Scenario(
        "pause_during_a_drain",
        "the drain ends, nothing follows until it is resumed, then one restart",
        manager_events.pause_during_a_drain,
        REPAIRED,
        in_every_run=False,
    ),
    Scenario(
        "clock_set_by_an_hour",
        "0 lost; nobody is touched by it, and one who must be is repaired afterwards",
        clock_events.set_clock,
        REPAIRED,
        in_every_run=False,
    ),
)
DATABASE = (
    Scenario(
        "database_killed",
        "0 lost; clients see nothing; fresh events in SQL within 30 s of its return",
        manager_events.kill_database,
        UNHARMED,
    ),
    Scenario(
        "database_down_60_s",
        "0 lost; clients see nothing; fresh events in SQL within 30 s of its return",
        manager_events.lose_database,
        UNHARMED,
        in_every_run=False,
    ),
    Scenario(
        "database_sessions_ended",
        "0 lost; clients see nothing",
        manager_events.end_sessions,
        UNHARMED,
    ),
    Scenario(
        "database_pool_full",
        "waits past the deadline are repeated, 0 lost",
        manager_events.fill_the_pool,
        UNHARMED,
        in_every_run=False,
    ),
    Scenario(
        "database_deadlocks",
        "transactions that the server undoes are repeated, 0 lost",
        manager_events.make_deadlocks,
        UNHARMED,
    ),
    Scenario(
        "database_serialization_failures",
        "transactions that the server refuses for others' writes are repeated, 0 lost",
        manager_events.fail_serialization,
        UNHARMED,
        in_every_run=False,
    ),
)
EXECUTOR = (
    *(
        Scenario(
            f"executor_killed_in_a_drain_{point}",
            f"dies {words}: one restart, 0 lost",
            executor_events.kill_in_a_drain(point),
            REPAIRED,
            in_every_run=point == "2",
        )
        for point, words in executor_events.DRAIN_POINTS.items()
    ),
    Scenario(
        "commands_forged_repeated_late",
        "each refused with its reason in the audit view; nothing is done for it",
        executor_events.forge_commands,
        (clients_saw_nothing, agent_told_all, only_ejected),
    ),
    Scenario(
        "engine_ignores_sigterm",
        "killed after the grace, restarted, back",
        executor_events.ignore_sigterm,
        (agent_told_all,),
        rules=SHORT_GRACE,
        in_every_run=False,
    ),
    Scenario(
        "logprobs_missing_lowest_or_few",
        "what cannot be judged is skipped; no engine is blamed; clients see nothing",
        engine_events.tell_odd_logprobs,
        UNHARMED,
        in_every_run=False,
    ),
    Scenario(
        "logprobs_not_a_number",
        "proof against that engine alone: one restart; clients see nothing",
        engine_events.tell_nan,
        REPAIRED,
        in_every_run=False,
    ),
    Scenario(
        "restart_loop",
        "at most 3 restarts, then quarantined; the others serve; a release brings it back",
        executor_events.die_at_every_start,
        (agent_told_all,),
        rules=FEW_RESTARTS,
    ),
    Scenario(
        "weights_missing_and_corrupt",
        "told by name, never served; after a good pull it is back",
        weights_events.replace_from_bad_sources,
        (clients_saw_nothing, agent_told_all),
        rules=FEW_RESTARTS,
        in_every_run=False,
    ),
    Scenario(
        "all_engines_bad_at_once",
        "never less than 2 of 3 in rotation; all repaired",
        executor_events.spoil_everybody,
        (clients_saw_nothing, enough_kept_serving, brake_fell),
        in_every_run=False,
        rules=WITH_BRAKE,
    ),
)
PLATFORMS = (
    Scenario(
        "haproxy_socket_dead",
        "the incident says that it was not drained, and why; no step claims it; then one restart",
        balancer_events.lose_socket,
        REPAIRED,
        rules=SHORT_DRAIN,
        needs=needs("haproxy"),
    ),
    Scenario(
        "haproxy_socket_dead_at_a_proof",
        "the same for an ejection",
        balancer_events.lose_socket_at_a_proof,
        REPAIRED,
        rules=SHORT_COMMANDS,
        in_every_run=False,
        needs=needs("haproxy"),
    ),
    Scenario(
        "nginx_reload_failing",
        "nothing is stopped before it is out there; then one restart; its clients see nothing",
        balancer_events.break_reload,
        REPAIRED,
        in_every_run=False,
        needs=needs("nginx"),
    ),
    Scenario(
        "kubernetes_api_errors",
        "409, 429, 5xx, 410 and a cut: each call is repeated until it is done, one restart",
        kubernetes_events.refuse_calls,
        REPAIRED,
    ),
    Scenario(
        "kubernetes_api_away",
        "the incident says that it was not drained, and why; no step claims it; then one restart",
        kubernetes_events.lose_api,
        REPAIRED,
        rules=SHORT_DRAIN,
    ),
    Scenario(
        "kubernetes_version_rolled_back",
        "an operator's word brings the version before back, by one command; clients see nothing",
        kubernetes_events.roll_out_and_back,
        (clients_saw_nothing, agent_told_all, kubernetes_events.rolled_back_once),
    ),
)
CLIENTS = (
    Scenario(
        "agent_killed_mid_stream",
        "only streams under way are cut; answers again within 30 s; no engine is blamed",
        client_events.kill_agent,
        (nobody_was_touched,),
    ),
    Scenario(
        "tenant_floods_with_one_prompt_and_4xx",
        "no engine is blamed; other clients see nothing",
        client_events.flood,
        UNHARMED,
    ),
    Scenario(
        "slow_readers",
        "their streams end whole; other clients see nothing",
        client_events.read_slowly,
        UNHARMED,
    ),
    Scenario(
        "clients_disconnect",
        "no engine is blamed; other clients see nothing",
        client_events.disconnect,
        UNHARMED,
    ),
    Scenario(
        "shadow_hangs_and_dies",
        "clients see nothing, 0 lost, its samples are read when it is back",
        client_events.stop_shadow,
        UNHARMED,
        in_every_run=False,
    ),
    Scenario(
        "shadow_ten_times_slower",
        "clients see nothing, no engine is blamed; its samples are read when it is back",
        client_events.slow_shadow,
        UNHARMED,
        in_every_run=False,
    ),
)
RESCUE = (
    Scenario(
        "rescue_engine_killed_under_100_streams",
        "100 whole answers, each the uncut one under one id; 0 errors",
        rescue_events.kill_under_streams,
        (agent_told_all,),
        rules=AT_ONCE,
    ),
    Scenario(
        "rescue_engine_hung_mid_stream",
        "every answer whole and the uncut one; 0 errors",
        rescue_events.hang_under_streams,
        (agent_told_all,),
        in_every_run=False,
        rules=AT_ONCE,
    ),
    Scenario(
        "rescue_instance_ejected_mid_stream",
        "every answer whole and the uncut one; nothing is done but what was asked for",
        rescue_events.eject_under_streams,
        (clients_saw_nothing, agent_told_all, only_ejected),
        in_every_run=False,
        rules=AT_ONCE,
    ),
    *(
        Scenario(
            f"rescue_garbage_mid_stream_{fault}",
            "every answer whole and the uncut one; the engine is repaired, no other is touched",
            rescue_events.garble(fault),
            REPAIRED,
            in_every_run=fault == "nan",
            rules=AT_ONCE,
        )
        for fault in ("nan", "stuck", "flat")
    ),
    Scenario(
        "rescue_engine_answers_503",
        "every answer whole and the uncut one, streamed or not; no engine is blamed",
        rescue_events.answers_503,
        (agent_told_all, nobody_was_touched),
        in_every_run=False,
        rules=AT_ONCE,
    ),
    Scenario(
        "rescue_whole_answer_hangs",
        "every answer that is not streamed comes whole within a minute; the engine is repaired",
        rescue_events.hang_under_whole_answers,
        (agent_told_all, restarted_once(VICTIM)),
        in_every_run=False,
        rules=AT_ONCE,
    ),
    Scenario(
        "rescue_request_bad_everywhere",
        "its client gets the good part and a clear error; no engine is blamed",
        rescue_events.bad_everywhere,
        UNHARMED,
    ),
    Scenario(
        "rescue_all_instances_bad",
        "clients get the good part and a clear error; never less than 2 of 3 in rotation",
        rescue_events.all_bad_under_streams,
        (clients_saw_nothing, enough_kept_serving, brake_fell),
        in_every_run=False,
        rules=WITH_BRAKE + NO_RAMP,
    ),
    Scenario(
        "rescue_storm",
        "no more than the budget are continued; the rest get the good part and a clear error",
        rescue_events.storm,
        REPAIRED,
        rules=AT_ONCE,
    ),
)

SCENARIOS = (*BROKER, *MESSAGES, *MANAGER, *DATABASE, *EXECUTOR, *PLATFORMS, *CLIENTS, *RESCUE)
