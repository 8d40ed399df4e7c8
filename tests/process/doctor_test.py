"""`cadenza admin doctor`: what it says about healthy servers and about others."""

import contextlib
import json
import re
import sys
import time
from concurrent import futures

import grpc
from cadence.api.v1 import common_pb2, domain_pb2, service_worker_pb2_grpc
from cadence.api.v1 import service_domain_pb2 as domain_api
from cadence.api.v1 import service_worker_pb2 as worker_api
from cadence.api.v1 import tasklist_pb2, workflow_pb2
from google.protobuf import timestamp_pb2

import group_test
import support


def examine(binary, server, *flags):
    """(exit code, what is wrong)."""
    words = ["admin", "doctor", "--address", server.grpc, "--format", "json", *flags]
    code, out, err = support.run(binary, *words)
    findings = json.loads(out)
    assert code == (1 if findings else 0), (code, out, err)
    assert all(finding["what"] and finding["do"] for finding in findings), findings
    return [finding["what"] for finding in findings]


def test_nothing_is_wrong_with_a_server_that_is_well(binary, folder):
    with support.Server(binary, folder / "data") as server:
        words = ["admin", "doctor", "--address", server.grpc]
        done = support.run(binary, *words)
        assert done == (0, f"Nothing is wrong with {server.grpc}.\n", ""), done
        code, out, _ = support.run(binary, *words, "--data", str(folder / "nowhere"))
        assert code == 1 and "nowhere cannot be looked at" in out, (code, out)


def test_a_server_that_is_not_there_is_said(binary, folder):
    server = support.Server(binary, folder / "data")
    (found,) = examine(binary, server)
    assert f"{server.grpc} does not answer" in found, found


def test_a_group_that_is_well_has_nothing_to_say(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        group_test.register(clusters, "orders")
        group_test.until_same(clusters, "orders")
        for cluster in clusters:
            support.wait_until(lambda: examine(binary, cluster) == [], f"{cluster.name} to be well")


def test_a_cluster_that_is_away_is_said_with_the_domains_that_are_active_there(binary, folder):
    with contextlib.ExitStack() as stack:
        clusters = stack.enter_context(group_test.group(binary, folder, 2))
        group_test.register(clusters, "orders", active="cluster1")
        group_test.register(clusters, "payments", active="cluster0")
        group_test.until_same(clusters, "orders")
        clusters[1].kill()
        found = support.wait_until(lambda: examine(binary, clusters[0]), "it to be noticed")
        assert len(found) == 2, found
        assert "cluster0 cannot follow cluster1 at " + clusters[1].grpc in found[0], found
        assert found[1] == "1 domains are active in a cluster that is away: orders.", found
        clusters[1].start()
        support.wait_until(lambda: examine(binary, clusters[0]) == [], "cluster0 to be well again")


def fail_decisions(server, count):
    """A worker that knows nothing of the workflow's type."""
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_worker_pb2_grpc.WorkerAPIStub(channel)
        for _ in range(count):
            task = stub.PollForDecisionTask(
                worker_api.PollForDecisionTaskRequest(
                    domain="d", task_list=tasklist_pb2.TaskList(name="work"), identity="broken"
                ),
                timeout=support.LIMIT,
            )
            failed = worker_api.RespondDecisionTaskFailedRequest(
                task_token=task.task_token,
                cause=workflow_pb2.DECISION_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
                details=common_pb2.Payload(data=b"no such type"),
            )
            stub.RespondDecisionTaskFailed(failed, timeout=support.LIMIT)


def test_a_workflow_whose_worker_fails_every_decision_is_said(binary, folder):
    with support.Server(binary, folder / "data") as server:
        for words in (
            ["domain", "register", "--global_domain", "false"],
            ["workflow", "start", "--workflow_id", "wf", "--tl", "work", "--wt", "type"]
            + ["--et", "600"],
        ):
            done = support.run(binary, *words, "--domain", "d", "--address", server.grpc)
            assert done[0] == 0, done
        fail_decisions(server, 4)
        (found,) = examine(binary, server)
        reason = "WORKFLOW_WORKER_UNHANDLED_FAILURE: no such type"
        assert found == (
            "Workers fail every decision of 1 workflows, for instance wf of type type in domain d "
            f"(attempt 4: {reason})."
        ), found
        lines = [line for line in server.lines() if "fail every decision" in line["msg"]]
        assert len(lines) == 1 and lines[0]["reason"] == reason, lines


# ---- a fake server, with everything wrong ----


def number(field, value):
    """A field of a message, as it is on the wire."""
    out = bytes([field << 3])
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return bytes([field << 3 | 2, len(value)]) + value


class MadeUp(grpc.GenericRpcHandler):
    """Answers each method with bytes, or what a function gives; others with an empty message."""

    def __init__(self, answers):
        self.answers = answers
        self.server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[self])
        self.grpc = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"

    def service(self, details):
        answer = self.answers.get(details.method.rsplit("/", 1)[1], b"")
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: answer() if callable(answer) else answer
        )

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop(None)


def now(seconds=0):
    return number(2, time.time_ns() + seconds * 10**9)


def stuck_domain(seconds):
    """A domain whose graceful failover should have ended so long ago."""
    end = timestamp_pb2.Timestamp(seconds=int(time.time()) - seconds)
    return domain_pb2.Domain(
        name="orders",
        is_global_domain=True,
        active_cluster_name="here",
        clusters=[
            domain_pb2.ClusterReplicationConfiguration(cluster_name=name)
            for name in ("here", "late")
        ],
        failover_info=domain_pb2.FailoverInfo(
            failover_expire_timestamp=end, completed_shard_count=1, pending_shards=[3, 5]
        ),
    )


def test_everything_that_is_wrong_is_said(binary, folder):
    letters = text(1, number(1, 5) + number(2, 3) + text(3, "late")) + number(2, 7)
    shards = number(1, 2) + text(2, number(1, 0) + text(2, "host"))
    shards += text(2, number(1, 1) + text(2, "unknown"))
    with MadeUp({"DescribePeers": lambda: now(-9)}) as late:
        behind = number(7, 3) + number(8, time.time_ns() - 90 * 10**9)
        peer = text(3, text(1, "late") + text(2, late.grpc) + number(3, 1) + behind)
        drains = stuck_domain(60)
        run = text(2, text(1, "wf-1") + text(2, "run")) + text(3, "charge") + text(4, "work")
        broken = text(1, "orders") + run + number(5, 7) + text(6, "BAD_BINARY: old")
        answers = {
            "ListFailingDecisions": text(1, broken) + number(2, 3),
            "Health": text(2, "starting"),
            "DescribeShardDistribution": shards,
            "CountDLQMessages": letters,
            "DescribePeers": lambda: text(1, "here") + now() + peer,
            "ListDomains": domain_api.ListDomainsResponse(domains=[drains]).SerializeToString(),
            "DescribeDomain": domain_api.DescribeDomainResponse(domain=drains).SerializeToString(),
        }
        with MadeUp(answers) as server:
            found = examine(binary, server)
    assert found[:5] == [
        "The server is not well: starting",
        "1 of 2 shards have no owner: their workflows stand still.",
        "5 messages of late about shard 3 could not be applied.",
        "7 changes of domains could not be applied.",
        "Workers fail every decision of 3 workflows, for instance wf-1 of type charge in domain "
        "orders (attempt 7: BAD_BINARY: old).",
    ], found
    clock = re.fullmatch(r"The clock of late is (\S+) s behind that of here\.", found[5])
    assert len(found) == 8 and 7 < float(clock[1]) < 11, found
    lag = re.fullmatch(r"here is (\d+) s behind late: 3 messages are not applied\.", found[6])
    assert 89 <= int(lag[1]) < 120, found
    stuck = r"The graceful failover of orders to here should have ended (\d+) s ago; "
    stuck += r"handed over: 1 of 3 shards\."
    assert 59 <= int(re.fullmatch(stuck, found[7])[1]) < 90, found


def test_a_failover_that_is_under_way_is_not_stuck(binary, folder):
    drains = stuck_domain(-60)
    answers = {
        "Health": number(1, 1),
        "DescribePeers": lambda: text(1, "here") + now() + text(3, text(1, "late")),
        "ListDomains": domain_api.ListDomainsResponse(domains=[drains]).SerializeToString(),
        "DescribeDomain": domain_api.DescribeDomainResponse(domain=drains).SerializeToString(),
    }
    with MadeUp(answers) as server:
        assert examine(binary, server) == []


def test_a_server_that_lost_memory_says_for_whom_it_waits(binary, folder):
    read = text(1, "near") + number(3, 1) + number(10, 1) + number(11, 5) + number(12, 16)
    gone = text(1, "gone") + number(3, 1) + number(4, 1) + text(5, "no way") + number(10, 1)
    peers = {"past": text(3, read) + text(3, gone)}
    answers = {
        "Health": number(1, 1) + text(2, "recovering: nothing goes."),
        "DescribePeers": lambda: text(1, "here") + now() + peers["past"],
    }
    with MadeUp(answers) as server:
        found = examine(binary, server)
        peers["past"] = b""
        assert examine(binary, server) == ["The server is recovering: nothing goes."]
    assert found[0] == (
        "here lost memory (its store was restored or copied) and reads from the others what it "
        "had: near (5 of 16 shards were read), gone (has not answered yet, is away now). Global "
        "domains that are active in here are not served until it has."
    ), found
    assert len(found) == 2 and found[1].startswith("here cannot follow gone at "), found


if __name__ == "__main__":
    support.main(sys.modules[__name__])
