"""Managed failover and rebalance in a group of two, by the real `cadence` command line."""

import contextlib
import json
import re
import sys

import grpc
from cadence.api.v1 import service_worker_pb2 as worker_api
from cadence.api.v1 import service_worker_pb2_grpc, tasklist_pb2

import group_test
import support

HERE, THERE = "cluster0", "cluster1"
NAMES = [f"managed-{number}" for number in range(4)]


def cadence(server, *words):
    code, out, err = support.cadence(server, "d", "admin", "cluster", *words)
    assert code == 0, (words, code, out, err)
    return out


def system(server, *words):
    code, out, err = support.cadence(server, "cadence-system", "workflow", *words)
    assert code == 0, (words, code, out, err)
    return out


def failover(server, verb, *flags):
    return cadence(server, "failover", verb, *flags)


def run_id(out):
    return re.search(r"rid: (\S+)", out).group(1)


def state(server, *flags):
    out = failover(server, "query", *flags)
    return json.loads(out[out.index("{") :])


def wait_state(server, wanted, *flags):
    def look():
        found = state(server, *flags)
        return found["State"] == wanted and found

    return support.wait_until(look, f"a failover to be {wanted}")


def register(clusters, names, **data):
    for name in names:
        group_test.register(clusters, name, data=data)
    for name in names:
        support.wait_until(lambda: clusters[1].active(name), f"{name} to be known in {THERE}")


def active(cluster, names):
    return [cluster.active(name) for name in names]


def wait_active(clusters, names, target):
    for cluster in clusters:
        support.wait_until(
            lambda: active(cluster, names) == [target] * len(names), f"{names} in {target}"
        )


def from_to(source, target, *flags):
    return ("--source_cluster", source, "--target_cluster", target, *flags)


@support.proves("A-265")
def test_a_failover_is_paused_resumed_and_rolled_back(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        server = clusters[0]
        register(clusters, NAMES, IsManagedByCadence="true")
        register(clusters, ["own"])
        slowly = ("--failover_batch_size", "1", "--failover_wait_time_second", "2")
        failover(server, "start", *from_to(HERE, THERE, *slowly))
        support.wait_until(lambda: state(server)["Success"] >= 1, "a domain to move")
        failover(server, "pause")
        paused = wait_state(server, "paused")
        assert 1 <= paused["Success"] < len(NAMES), paused
        assert paused["TotalDomains"] == len(NAMES) and paused["Operator"] != "unknown", paused
        assert active(server, NAMES).count(THERE) == paused["Success"]
        failover(server, "resume")
        done = wait_state(server, "complete")
        assert done["SuccessDomains"] == NAMES and not done["FailedDomains"], done
        wait_active(clusters, NAMES, THERE)
        assert server.active("own") == HERE
        failover(server, "rollback", "--failover_wait_time_second", "1")
        support.wait_until(lambda: state(server)["TargetCluster"] == HERE, "the rollback")
        wait_state(server, "complete")
        wait_active(clusters, NAMES, HERE)
        support.wait_until(
            lambda: failover(server, "list").count("cadence-failover-manager") == 2,
            "both runs to be listed",
        )


def test_an_aborted_failover_goes_no_further_and_can_be_rolled_back(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        server = clusters[0]
        register(clusters, NAMES, IsManagedByCadence="true")
        slowly = ("--failover_batch_size", "1", "--failover_wait_time_second", "600")
        out = failover(server, "start", *from_to(HERE, THERE, *slowly))
        support.wait_until(lambda: state(server)["Success"] == 1, "a domain to move")
        failover(server, "abort", "--reason", "enough")
        assert state(server, "--run_id", run_id(out))["State"] == "aborted"
        assert active(server, NAMES) == [THERE, HERE, HERE, HERE]
        failover(server, "rollback")
        wait_active(clusters, NAMES, HERE)


def test_a_failover_goes_on_after_a_kill(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        server = clusters[0]
        register(clusters, NAMES, IsManagedByCadence="true")
        slowly = ("--failover_batch_size", "1", "--failover_wait_time_second", "2")
        failover(server, "start", *from_to(HERE, THERE, *slowly))
        support.wait_until(lambda: state(server)["Success"] >= 1, "a domain to move")
        server.kill()
        server.start()
        done = wait_state(server, "complete")
        assert done["SuccessDomains"] == NAMES and not done["FailedDomains"], done
        wait_active(clusters, NAMES, THERE)


def test_a_drill_comes_back_by_itself(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        server = clusters[0]
        register(clusters, NAMES, IsManagedByCadence="true")
        flags = ("--domains", NAMES[0], "--failover_drill_wait_second", "3")
        failover(server, "start", *from_to(HERE, THERE, *flags))
        wait_active(clusters, NAMES[:1], THERE)
        assert active(server, NAMES[1:]) == [HERE] * 3
        done = wait_state(server, "complete", "--failover_drill")
        assert done["SuccessResetDomains"] == NAMES[:1], done
        wait_active(clusters, NAMES, HERE)


def test_domains_are_failed_over_from_the_cluster_that_takes_them(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        register(clusters, NAMES, IsManagedByCadence="true")
        failover(clusters[1], "start", *from_to(HERE, THERE, "--v2"))
        done = wait_state(clusters[1], "complete", "--v2")
        assert done["SuccessDomains"] == NAMES, done
        wait_active(clusters, NAMES, THERE)


@support.proves("F-043")
def test_with_a_timeout_domains_are_failed_over_gracefully(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        server = clusters[0]
        register(clusters, NAMES, IsManagedByCadence="true")
        failover(server, "start", *from_to(HERE, THERE, "--failover_timeout_seconds", "60"))
        done = wait_state(server, "complete")
        assert done["SuccessDomains"] == NAMES, done
        wait_active(clusters, NAMES, THERE)
        code, out, err = support.cadence(clusters[1], NAMES[0], "domain", "describe")
        assert code == 0 and '"failoverType":"Grace"' in out.replace("\\", ""), out + err


def poll(cluster, name):
    """A worker of the domain asks once, in vain."""
    with grpc.insecure_channel(cluster.grpc) as channel:
        stub = service_worker_pb2_grpc.WorkerAPIStub(channel)
        with contextlib.suppress(grpc.RpcError):
            stub.PollForDecisionTask(
                worker_api.PollForDecisionTaskRequest(
                    domain=name, task_list=tasklist_pb2.TaskList(name="work"), identity="w"
                ),
                timeout=2,
            )


def test_a_domain_goes_only_where_its_workers_are(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        server = clusters[0]
        register(clusters, NAMES[:2], IsManagedByCadence="true")
        poll(server, NAMES[0])
        failover(server, "start", *from_to(HERE, THERE))
        done = wait_state(server, "complete")
        assert done["FailedDomains"] == NAMES[:1] and done["SuccessDomains"] == NAMES[1:2], done
        assert active(server, NAMES[:2]) == [HERE, THERE]
        poll(clusters[1], NAMES[0])
        failover(server, "start", *from_to(HERE, THERE))
        support.wait_until(lambda: state(server)["SuccessDomains"] == NAMES[:1], "it to move")
        wait_active(clusters, NAMES[:2], THERE)


@support.proves("F-044", "A-265")
def test_a_rebalance_brings_domains_home(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        server = clusters[0]
        register(clusters, NAMES[:2], IsManagedByCadence="true", PreferredCluster=THERE)
        register(clusters, NAMES[2:], IsManagedByCadence="true")
        cadence(server, "rebalance", "start")
        wait_active(clusters, NAMES[:2], THERE)
        assert active(server, NAMES[2:]) == [HERE] * 2
        support.wait_until(
            lambda: "cadence-rebalance-workflow" in system(server, "list"), "the run to be listed"
        )
        for name in NAMES[2:]:
            group_test.update(server, name, data={"PreferredCluster": THERE})
        cadence(server, "rebalance", "start", "--v2")
        wait_active(clusters, NAMES, THERE)


if __name__ == "__main__":
    support.main(sys.modules[__name__])
