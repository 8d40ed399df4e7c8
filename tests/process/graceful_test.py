"""Graceful failover between two real clusters, there and back, under load.

Callers start, signal, cancel and terminate workflows at both clusters all the time; workers of the
official client poll both; others heartbeat and answer activities at the cluster that they did not
get them from. Not one of these calls may fail. CADENZA_FAILOVERS: how many failovers there are."""

import contextlib
import os
import re
import statistics
import sys
import threading
import time

from cadence.api.v1 import domain_pb2
from cadence.api.v1 import service_domain_pb2 as domain_api
from google.protobuf import duration_pb2, field_mask_pb2

import doctor_test
import group_test
import replication_test
import support
from graceful_load import WORDS, Callers, PythonWorkers, RawWorkers, Tally
from replication_test import DOMAIN, kinds, same, two_clusters

FAILOVERS = int(os.environ.get("CADENZA_FAILOVERS", "2"))
TIMEOUT = 60  # of a failover
PAUSE = 1.5  # seconds between failovers


# ---- failovers ----


def begin_failover(cluster):
    cluster.api.UpdateDomain(
        domain_api.UpdateDomainRequest(
            name=DOMAIN,
            active_cluster_name=cluster.name,
            failover_timeout=duration_pb2.Duration(seconds=TIMEOUT),
            update_mask=field_mask_pb2.FieldMask(paths=["active_cluster_name", "failover_timeout"]),
        ),
        timeout=support.LIMIT,
    )


def is_active(cluster):
    domain = cluster.describe(DOMAIN)
    return domain.active_cluster_name == cluster.name and not domain.HasField("failover_info")


class Probe:
    """A workflow with a decision that waits in the target, where a poll is parked."""

    def __init__(self, sides):
        self.sides = sides
        sides[0].start("probe")
        sides[0].complete(sides[0].poll())

    def park(self, target, number):
        side = self.sides[target]
        self.sides[1 - target].signal("probe", f"s{number}")
        replication_test.until_same(self.sides, "probe")
        self.answer = []
        self.thread = threading.Thread(
            target=lambda: self.answer.append((side.poll(), time.monotonic()))
        )
        self.thread.start()
        time.sleep(0.3)

    def join(self, target):
        self.thread.join()
        task, when = self.answer[0]
        assert task.task_token, "the poll came back empty"
        self.sides[target].complete(task)
        return when


def fail_over(clusters, probe, target, number):
    """Seconds until the target was active, and until the parked poll had its decision."""
    probe.park(target, number)
    begin = time.monotonic()
    begin_failover(clusters[target])
    while not is_active(clusters[target]):
        assert time.monotonic() - begin < TIMEOUT, "the failover did not end in time"
        time.sleep(0.005)
    active = time.monotonic() - begin
    return active, probe.join(target) - begin


# ---- what came of it ----


def metric_of(cluster, name):
    """The sum of all series of a metric."""
    _, text = support.get(cluster.http, "/metrics")
    found = re.findall(rf"^{name}(?:_total)?(?:{{[^}}]*}})? ([0-9.e+]+)$", text, re.M)
    return sum(float(value) for value in found)


def check_orders(sides, orders):
    def is_closed(name):
        events = sides[0].history(name)
        return (
            events
            and kinds(events)[-1].startswith("workflow_execution_")
            and (
                kinds(events)[-1]
                not in ("workflow_execution_started", "workflow_execution_signaled")
            )
        )

    expected = '"' + ",".join(str(number) for number in range(WORDS)) + '"'
    for name in orders:
        support.wait_until(lambda: is_closed(name), f"{name} to end", limit=120)
        events = replication_test.until_same(sides, name)
        assert kinds(events)[-1] == "workflow_execution_completed", (name, kinds(events))
        result = events[-1].workflow_execution_completed_event_attributes.result.data
        assert result.decode().strip() == expected, (name, result)
        assert kinds(events).count("workflow_execution_signaled") == WORDS, (name, kinds(events))


def check_tally(tally):
    refused = sum(n for method, n in tally.failed.items() if "DecisionTask" in method)
    failed = {m: n for m, n in tally.failed.items() if "DecisionTask" not in m}
    calls = sum(tally.done.values())
    print(
        f"    {calls} calls, {sum(failed.values())} failed, slowest {tally.slowest:.2f} s; "
        f"{refused} answers of decisions were refused"
    )
    assert not failed, (failed, tally.examples)
    for method in (
        "StartWorkflowExecution",
        "SignalWithStartWorkflowExecution",
        "SignalWorkflowExecution",
        "RequestCancelWorkflowExecution",
        "TerminateWorkflowExecution",
        "RespondActivityTaskCompleted",
        "RespondActivityTaskCompletedByID",
        "RecordActivityTaskHeartbeat",
        "RecordActivityTaskHeartbeatByID",
    ):
        assert tally.done[method] > 0, (method, tally.done)


def check_clusters(clusters):
    held = sum(metric_of(c, "cadence_graceful_failover_held_calls") for c in clusters)
    done = sum(metric_of(c, "cadence_graceful_failover_completed") for c in clusters)
    late = sum(metric_of(c, "cadence_graceful_failover_failures") for c in clusters)
    print(f"    {held:.0f} calls were held; {done:.0f} failovers ended with all shards ready")
    assert done == FAILOVERS and late == 0, (done, late)
    assert held > 0 or FAILOVERS < 10  # a failover takes a moment only
    for cluster in clusters:
        for name in ("histories_forked", "histories_switched", "zombies", "events_lost"):
            assert metric_of(cluster, f"replication_{name}") == 0, (cluster.name, name)


@support.proves("F-040")
def test_no_call_fails_while_a_domain_goes_there_and_back_gracefully(binary, folder):
    times = []
    tally = Tally()
    with two_clusters(binary, folder) as (clusters, sides):
        probe = Probe(sides)
        with contextlib.ExitStack() as stack:
            stack.enter_context(PythonWorkers(clusters, tally))
            stack.enter_context(RawWorkers(sides, tally))
            callers = Callers(sides, tally)
            with callers:
                for number in range(FAILOVERS):
                    time.sleep(PAUSE)
                    times.append(fail_over(clusters, probe, 1 - number % 2, number))
                time.sleep(PAUSE)
            check_orders(sides, callers.orders)
        assert same(sides, "probe")
        for what, column in (("active", 0), ("the first decision", 1)):
            found = [1e3 * time_[column] for time_ in times]
            print(
                f"    from the command to {what}: median {statistics.median(found):.0f} ms, "
                f"slowest {max(found):.0f} ms of {len(found)}"
            )
        print(f"    {len(callers.orders)} workflows of the official client completed")
        check_tally(tally)
        check_clusters(clusters)


# ---- command lines ----


def cadenza(binary, cluster, *words):
    return support.run(binary, "--address", cluster.grpc, "--domain", DOMAIN, *words)


def until_settled(clusters, target):
    """All of them know that it is active there, and of no failover under way."""
    support.wait_until(
        lambda: is_active(clusters[target])
        and all(c.active(DOMAIN) == clusters[target].name for c in clusters),
        f"the domain to be active in cluster{target}",
    )


DONE = (
    r"Domain orders successfully failed over to cluster{} in \d+\.\d\d s: 16 of 16 shards of "
    r"cluster\d handed over\."
)


def test_the_command_line_shows_a_graceful_failover_to_its_end(binary, folder):
    with two_clusters(binary, folder) as (clusters, _):
        words = ("domain", "update", "-failover_type", "graceful", "-active_cluster", "cluster1")
        code, out, err = cadenza(binary, clusters[1], *words, "-failover_timeout", "120s")
        assert code == 0 and "successfully updated" in out, (code, out, err)
        assert re.search(DONE.format(1), out), out
        until_settled(clusters, 1)

        # Asked elsewhere it is refused, with the command to use.
        code, out, err = cadenza(
            binary,
            clusters[1],
            *("domain", "update", "--failover_type", "grace"),
            *("--active_cluster", "cluster0", "--failover_timeout", "120"),
        )
        assert code == 1, (code, out, err)
        command = re.search(r"cadenza (--address \S+ --domain .*?--active_cluster cluster0)", err)
        code, out, err = support.run(binary, *command[1].split())
        assert code == 0 and re.search(DONE.format(0), out), (code, out, err)
        until_settled(clusters, 0)

        code, out, err = cadenza(
            binary, clusters[1], *("domain", "failover", "--ac", "cluster1", "--fts", "30")
        )
        assert code == 0 and re.search(DONE.format(1), out), (code, out, err)
        code, out, err = cadenza(binary, clusters[1], "domain", "failover", "--watch")
        assert code == 1 and "no graceful failover of domain orders is under way" in err, (out, err)
        code, out, err = cadenza(binary, clusters[0], "domain", "list-failover-history")
        assert code == 0 and len(re.findall("(?i)graceful, complete in", out)) == 3, (out, err)


def test_a_failover_that_takes_its_time_is_watched_and_forced_to_its_end(binary, folder):
    settings = folder / "dynamic.yaml"
    settings.write_text("system.enableGracefulFailover:\n- value: false\n")
    ports = [(support.free_port(), support.free_port()) for _ in range(2)]
    with contextlib.ExitStack() as stack:
        clusters = [group_test.Cluster(binary, folder, number, ports) for number in range(2)]
        for cluster in clusters:
            cluster.flags += ("--dynamic-config", str(settings))
            stack.enter_context(cluster)
        group_test.register(clusters, DOMAIN)
        group_test.until_same(clusters, DOMAIN)

        # No shard hands over, so its time runs out.
        code, out, err = cadenza(
            binary, clusters[1], *("domain", "failover", "--ac", "cluster1", "--fts", "3s")
        )
        assert code == 0 and "cluster1: nothing from cluster0" in out, (code, out, err)
        assert re.search(
            r"is active in cluster1 after [34]\.\d\d s: the time was over before", out
        ), out
        until_settled(clusters, 1)

        move = ("domain", "update", "--active_cluster", "cluster0", "--failover_type")
        code, out, err = cadenza(binary, clusters[0], *move, "grace", "--detach")
        assert code == 0 and "domain failover --domain orders --watch" in out, (code, out, err)
        code, out, err = cadenza(binary, clusters[0], *move, "grace")
        assert code == 1 and "concurrent" in err.lower(), (code, out, err)
        with contextlib.ExitStack() as watching:
            seen = []
            watch = threading.Thread(
                target=lambda: seen.append(
                    cadenza(binary, clusters[0], "domain", "failover", "--watch")
                )
            )
            watching.callback(watch.join)
            watch.start()
            time.sleep(1)
            code, out, err = cadenza(binary, clusters[0], *move, "force")
            assert code == 0, (code, out, err)
        code, out, err = seen[0]
        assert code == 0 and "orders moves to cluster0" in out, (code, out, err)
        assert "it was forced before" in out, out
        until_settled(clusters, 0)


# ---- a server that is made up: how a failover ended comes late, or never ----


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number, value):
    """A field of our own, which the client's messages do not have."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def move_of(is_ours):
    """The domain while it moves, and when that is over."""
    domain = domain_pb2.Domain(
        id="id", name=DOMAIN, active_cluster_name="cluster0", failover_version=1
    ).SerializeToString()
    info = domain_pb2.FailoverInfo(failover_version=1, completed_shard_count=3, pending_shards=[7])
    shards = field(1, "cluster1") + field(2, 4) + field(3, 3)
    moves = field(1010, field(2, 1) + field(3, shards)) if is_ours else b""
    return domain + field(17, info.SerializeToString() + moves), domain


def history_of(outcome):
    to = domain_pb2.ActiveClusterInfo(active_cluster_name="cluster0", failover_version=1)
    event = domain_api.FailoverEvent(id="e", cluster_failovers=[{"to_cluster": to}])
    return field(1, event.SerializeToString() + outcome)


def watch_made_up(binary, is_ours):
    shards = field(7, field(1, "cluster1") + field(2, 4) + field(3, 3))
    outcome = field(1010, field(2, "forced") + field(6, "cluster1 shard 3: missing") + shards)
    looks, histories = list(move_of(is_ours)), [b"", b"", b"", outcome if is_ours else b""]

    def next_of(answers):
        return answers.pop(0) if len(answers) > 1 else answers[0]

    answers = {
        "DescribeDomain": lambda: field(1, next_of(looks)),
        "ListFailoverHistory": lambda: history_of(next_of(histories)),
    }
    with doctor_test.MadeUp(answers) as server:
        return cadenza(binary, server, "domain", "failover", "--watch")


def test_how_a_failover_ended_is_waited_for_and_else_said_to_be_unknown(binary, folder):
    code, out, err = watch_made_up(binary, True)
    assert code == 0 and "it was forced before all shards had handed over" in out, (code, out, err)
    assert "handed over: 3 of 4 shards of cluster1" in out and "successfully" not in out, out
    code, out, err = watch_made_up(binary, False)
    assert code == 0 and "successfully" not in out, (code, out, err)
    assert "is not known" in out and "(last seen: 3 of 4 shards)" in out, out


def test_the_command_line_says_what_moved_and_what_was_there_already(binary, folder):
    with group_test.group(binary, folder, 3) as clusters:
        names = ",".join(cluster.name for cluster in clusters)
        code, out, err = cadenza(
            binary,
            clusters[0],
            *("domain", "register", "--global_domain", "true", "--active_cluster", "cluster0"),
            *("--clusters", names, "--active_clusters", "region.lis:cluster0,region.oslo:cluster2"),
        )
        assert code == 0, (code, out, err)
        group_test.until_same(clusters, DOMAIN)

        # An attribute moves gracefully. Asked elsewhere: the command that moves it, nothing else.
        move = ("domain", "failover", "--active_clusters", "region.lis:cluster1")
        code, out, err = cadenza(binary, clusters[0], *move, "--failover_timeout", "60s")
        command = re.search(r"cadenza (--address .*--active_clusters region.lis:cluster1)", err)
        assert code == 1 and command and "--active_cluster " not in command[1], (code, out, err)
        code, out, err = support.run(binary, *command[1].split())
        assert code == 0 and re.search(
            r"region\.lis of domain orders successfully failed over to cluster1 in \d+\.\d\d s: "
            r"16 of 16 shards of cluster0, 16 of 16 shards of cluster2 handed over\.",
            out,
        ), (code, out, err)
        assert "to cluster0" not in out, out
        group_test.until_same(clusters, DOMAIN)

        # To where it is: nothing changes, and the words say so.
        before = clusters[0].describe(DOMAIN).failover_version
        code, out, err = cadenza(binary, clusters[0], "domain", "failover", "--ac", "cluster0")
        assert code == 0 and out == (
            "Domain orders was active in cluster0 already; nothing was changed.\n"
        ), (code, out, err)
        code, out, err = cadenza(binary, clusters[0], *move)
        assert code == 1 and "it is active there already" in err, (code, out, err)
        assert clusters[0].describe(DOMAIN).failover_version == before

        code, out, err = cadenza(binary, clusters[0], *move[:3], "region.lis:cluster2")
        assert code == 0 and out == (
            "region.lis of domain orders successfully failed over to cluster2.\n"
        ), (code, out, err)


def test_the_cadence_command_line_fails_over_gracefully(binary, folder):
    with two_clusters(binary, folder) as (clusters, _):
        code, out, err = support.cadence(
            clusters[1],
            DOMAIN,
            *("domain", "update", "--active_cluster", "cluster1", "--failover_type", "grace"),
            *("--failover_timeout_seconds", "60"),
        )
        assert code == 0, (code, out, err)
        until_settled(clusters, 1)
        code, out, err = support.cadence(
            clusters[0], DOMAIN, *("domain", "failover", "--ac", "cluster0", "--fts", "60")
        )
        assert code == 0, (code, out, err)
        until_settled(clusters, 0)
        # Counted once the outcome is entered, a moment after the domain is active.
        support.wait_until(
            lambda: sum(metric_of(c, "cadence_graceful_failover_completed") for c in clusters) == 2,
            "both failovers to be counted",
        )


if __name__ == "__main__":
    support.main(sys.modules[__name__])
