"""One workflow id that is used too much: the real binary, its dynamic file, and real clients."""

import asyncio
import json
import random
import statistics
import sys
import threading
import time
from datetime import timedelta

import grpc
from cadence import workflow
from cadence.api.v1 import (
    common_pb2,
    history_pb2,
    service_domain_pb2 as domain_api,
    service_workflow_pb2 as workflow_api,
    tasklist_pb2,
)
from cadence.client import Client
from cadence.worker import Registry, Worker
from google.protobuf import duration_pb2

import support

LIST = "limits-list"
SECONDS = 4  # of a storm
IN_FLIGHT = 8
REFUSAL = "Too many requests for the workflow ID"
FULL = "exceeded workflow execution limit for signal events"  # a run takes 10,000
# The example with which the feature was announced, as it stood there.
EXAMPLE = """\
history.workflowIDCacheExternalEnabled:
- value: true
  constraints: {}
history.workflowIDExternalRateLimitEnabled:
- value: false
  constraints:
    domainName: samples-domain
- value: true
  constraints: {}
history.workflowIDExternalRPS:
- value: 100
  constraints: {}
"""
REQUEST = workflow_api.SignalWithStartWorkflowExecutionRequest
RESPONSE = workflow_api.SignalWithStartWorkflowExecutionResponse
registry = Registry()


@registry.activity()
async def quick(number: int) -> int:
    return number


@registry.workflow()
class Loop:
    """One activity after the other over a long list."""

    @workflow.run
    async def run(self, count: int) -> int:
        for number in range(count):
            await quick.with_options(schedule_to_close_timeout=timedelta(minutes=2)).execute(number)
        return count


def serve(binary, folder, settings):
    """A server that follows a dynamic file with these settings."""
    (folder / "dynamic.yaml").write_text(settings)
    return support.Server(binary, folder / "data", "--dynamic-config", str(folder / "dynamic.yaml"))


async def register(server, *names):
    async with Client(domain=names[0], target=server.grpc) as client:
        for name in names:
            await client.domain_stub.RegisterDomain(
                domain_api.RegisterDomainRequest(
                    name=name,
                    workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
                )
            )


def signal_with_start(domain, workflow_id, number):
    return REQUEST(
        start_request=workflow_api.StartWorkflowExecutionRequest(
            domain=domain,
            workflow_id=workflow_id,
            workflow_type=common_pb2.WorkflowType(name="waits"),
            task_list=tasklist_pb2.TaskList(name="nobody"),
            execution_start_to_close_timeout=duration_pb2.Duration(seconds=600),
            task_start_to_close_timeout=duration_pb2.Duration(seconds=10),
            request_id=f"{domain}-{workflow_id}-{number}",
        ),
        signal_name="go",
    )


class Storm:
    """Calls on one workflow id, as fast as they are answered. Not through the client's own retries:
    it would wait, as it should."""

    def __init__(self, server):
        self.channel = grpc.aio.insecure_channel(server.grpc)
        self.call = self.channel.unary_unary(
            "/uber.cadence.api.v1.WorkflowAPI/SignalWithStartWorkflowExecution",
            request_serializer=REQUEST.SerializeToString,
            response_deserializer=RESPONSE.FromString,
        )
        self.passed = self.refused = self.number = 0

    async def one(self, domain, workflow_id):
        self.number += 1
        headers = (("rpc-caller", "test"), ("rpc-service", "cadence-frontend"))
        try:
            await self.call(
                signal_with_start(domain, workflow_id, self.number), metadata=headers, timeout=30
            )
            self.passed += 1
        except grpc.aio.AioRpcError as error:
            assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error
            assert error.details() in (REFUSAL, FULL), error
            self.refused += error.details() == REFUSAL

    async def rage(self, domain, workflow_id, seconds):
        end = time.monotonic() + seconds

        async def caller():
            while time.monotonic() < end:
                await self.one(domain, workflow_id)

        began = time.monotonic()
        await asyncio.gather(*(caller() for _ in range(IN_FLIGHT)))
        return time.monotonic() - began


async def median_latency(storm, domain, workflow_id, count):
    times = []
    for _ in range(count):
        began = time.monotonic()
        await storm.one(domain, workflow_id)
        times.append(time.monotonic() - began)
        await asyncio.sleep(0.02)  # a calm id stays below the limit
    return statistics.median(times)


async def shown(server, key):
    """What the server says that a setting is, as JSON."""
    async with grpc.aio.insecure_channel(server.grpc) as channel:
        get = channel.unary_unary(
            "/uber.cadence.admin.v1.AdminAPI/GetDynamicConfig",
            request_serializer=lambda key: b"\x0a" + bytes([len(key)]) + key.encode(),
            response_deserializer=bytes,
        )
        answer = await get(key, timeout=30)
        return answer.rpartition(b"\x12")[2][1:].decode()  # the last field, behind its length


async def until_shown(server, key, value):
    """Waits until a setting has this value."""
    end = time.monotonic() + support.LIMIT
    while (last := await shown(server, key)) != value:
        assert time.monotonic() < end, (key, value, last)
        await asyncio.sleep(0.02)


def metric(server, name, domain):
    """The value of a series that has just the label of the domain."""
    line = f'{name}{{domain="{domain}"}} '
    found = [x for x in support.get(server.http, "/metrics")[1].splitlines() if x.startswith(line)]
    return float(found[0][len(line) :]) if found else 0.0


@support.proves("H-003", "H-004", "H-005", "H-006", "H-014", "H-015", "H-016")
def test_the_example_limits_one_domain_and_only_watches_the_other(binary, folder):
    async def body(server):
        await register(server, "orders", "samples-domain")
        limited, shadow, neighbour = Storm(server), Storm(server), Storm(server)
        before = await median_latency(neighbour, "orders", "calm", 30)
        raging = asyncio.create_task(limited.rage("orders", "busy", SECONDS))
        during = await median_latency(neighbour, "orders", "calm", 30)
        took = await raging
        await shadow.rage("samples-domain", "busy", SECONDS)
        print(
            f"   in {took:.1f} s {limited.passed} passed and {limited.refused} were refused;"
            f" in the shadow {shadow.passed} passed;"
            f" a neighbour's median {before * 1000:.2f} ms before, {during * 1000:.2f} ms during"
        )
        assert 0.95 * 100 * took <= limited.passed <= 100 * took + 100, limited.passed
        assert limited.refused > 0 and neighbour.refused == 0 and shadow.refused == 0
        name = "workflow_id_external_requests_ratelimited"
        assert metric(server, name, "orders") == limited.refused
        if shadow.passed > 100 * SECONDS + 200:  # else the machine was too slow
            assert metric(server, name, "samples-domain") > 0
        upper = "workflow_id_external_requests_max_requests_per_second_upper"
        assert metric(server, upper, "orders") > 100
        lines = [x for x in server.lines() if x["msg"] == "Rate limiting workflowID"]
        line = next(x for x in lines if x["wf-domain-name"] == "orders")
        assert line["level"] == "info" and line["service"] == "cadence-history", line
        assert line["request-type"] == "external" and line["wf-id"] == "busy", line
        assert line["wf-domain-id"] and line["logging-call-at"] and line["ts"], line
        assert len(lines) < 200, "a storm must not fill the log"

    with serve(binary, folder, EXAMPLE) as server:
        asyncio.run(body(server))


@support.proves("H-002", "H-019")
def test_a_changed_file_holds_soon_and_a_broken_one_changes_nothing(binary, folder):
    def write(text):
        (folder / "dynamic.yaml").write_text(text)

    key = "history.workflowIDExternalRPS"

    async def burst(server):
        storm = Storm(server)
        await asyncio.sleep(1.1)  # the bucket is full
        began = time.monotonic()
        for _ in range(60):
            await storm.one("orders", "busy")
        return storm.passed, time.monotonic() - began

    async def expect_limit(server, what):
        passed, took = await burst(server)
        assert passed <= 2 + 2 * took + 1, (what, passed, took)
        assert passed < 60, f"{what}: 60 calls took {took} s here"

    def told(server):
        return [x for x in server.lines() if x["msg"] == "the dynamic settings stay as they were"]

    async def body(server):
        await register(server, "orders")
        assert (await burst(server))[0] == 60
        write(f"{key}: [{{value: 2}}]\n")
        await until_shown(server, key, "2")
        await expect_limit(server, "a limit of 2")
        for count, broken in enumerate((f"{key}: [{{value: many}}]\n", "a: [\n", "\x00"), 1):
            write(broken)
            support.wait_until(lambda: len(told(server)) == count, "the refusal of a broken file")
            await expect_limit(server, broken)
        assert len(told(server)) == 3 and told(server)[0]["level"] == "error", told(server)
        assert f"dynamic.yaml:1: {key}" in told(server)[0]["error"], told(server)[0]
        write("{}")
        await until_shown(server, key, "2147483647")
        assert (await burst(server))[0] == 60

    with serve(binary, folder, "{}") as server:
        asyncio.run(body(server))


@support.proves("H-006", "H-008")
def test_a_real_client_that_is_held_off_comes_again_and_succeeds(binary, folder):
    """The client's own retries, nothing of ours: each call ends well, and the server sees that
    none went past the limit."""
    rate, count = 5, 15

    async def body(server):
        await register(server, "orders")
        async with Client(domain="orders", target=server.grpc) as client:
            options = {
                "task_list": "nobody",
                "execution_start_to_close_timeout": timedelta(minutes=5),
                "workflow_id": "busy",
            }
            await client.start_workflow("Loop", 1, **options)
            began = time.monotonic()
            signals = [client.signal_workflow("busy", "", "go", n) for n in range(count)]
            await asyncio.gather(*signals)
            took = time.monotonic() - began
        print(f"   {count} calls at {rate} a second took {took:.1f} s, all of them succeeded")
        assert took >= (count - rate) / rate, took
        assert metric(server, "workflow_id_external_requests_ratelimited", "orders") > 0

    with serve(binary, folder, f"history.workflowIDExternalRPS: [{{value: {rate}}}]\n") as server:
        asyncio.run(body(server))


class Rewriter(threading.Thread):
    """Rewrites the file many times a second: good values, broken ones, half a file, none at all.
    Good files set both limits to the same value, 3 or 1000003."""

    def __init__(self, path):
        super().__init__()
        self.path, self.written, self.is_over = path, 0, threading.Event()

    def run(self):
        good = (
            "history.workflowIDExternalRPS: [{value: %d}]\n"
            "limit.signalNameLength: [{value: %d}]\n"
        )
        whole = [good % (3, 13), good % (1000003, 1000)]
        broken = ["a: [", "\x00", "history.workflowIDExternalRPS: [{value: many}]\n", ""]
        while not self.is_over.is_set():
            number, step = divmod(self.written, 8)
            text = whole[step // 4] if step % 2 == 0 else broken[number % len(broken)]
            if step % 3 == 0:  # in place: the server may see half of it
                self.path.write_text(text)
            else:
                other = self.path.with_suffix(".new")
                other.write_text(text)
                other.replace(self.path)
            self.written += 1
            time.sleep(random.uniform(0.001, 0.009))


@support.proves("H-019")
def test_a_storm_of_good_and_broken_files_tears_nothing(binary, folder):
    """Method: while the file changes some 200 times a second, clients call and the values are read
    back. Every value that is seen was written whole once, or is the default (an empty file)."""
    keys = {
        "history.workflowIDExternalRPS": {"3", "1000003", "2147483647"},
        "limit.signalNameLength": {"13", "1000"},
    }

    async def look(server, end):
        seen = {key: set() for key in keys}
        while time.monotonic() < end:
            for key in keys:
                answer = await shown(server, key)
                assert answer in keys[key], (key, answer)
                seen[key].add(answer)
        return seen

    async def body(server):
        await register(server, "orders")
        rewriter = Rewriter(folder / "dynamic.yaml")
        rewriter.start()
        try:
            storm = Storm(server)
            end = time.monotonic() + 6
            _, seen = await asyncio.gather(storm.rage("orders", "busy", 6), look(server, end))
        finally:
            rewriter.is_over.set()
            rewriter.join()
        print(f"   {rewriter.written} files in 6 s, {storm.passed} calls passed; seen {seen}")
        assert storm.passed > 0
        assert seen["history.workflowIDExternalRPS"] != {"2147483647"}, "no file was taken"
        (folder / "dynamic.yaml").write_text("history.workflowIDExternalRPS: [{value: 7}]\n")
        await until_shown(server, "history.workflowIDExternalRPS", "7")
        calm = Storm(server)  # the last file holds, whatever came before
        began = time.monotonic()
        for _ in range(60):
            await calm.one("orders", "other")
        assert calm.passed <= 7 + 7 * (time.monotonic() - began) + 1, calm.passed

    with serve(binary, folder, "{}") as server:
        asyncio.run(body(server))
        assert server.process.poll() is None


async def read_history(client, execution):
    """All events, once the run has closed."""
    request = workflow_api.GetWorkflowExecutionHistoryRequest(
        domain="orders",
        workflow_execution=execution,
        wait_for_new_event=True,
        history_event_filter_type=history_pb2.EVENT_FILTER_TYPE_CLOSE_EVENT,
    )
    while not (await client.workflow_stub.GetWorkflowExecutionHistory(request)).history.events:
        pass
    events, request = [], workflow_api.GetWorkflowExecutionHistoryRequest(
        domain="orders", workflow_execution=execution
    )
    while True:
        page = await client.workflow_stub.GetWorkflowExecutionHistory(request)
        events += page.history.events
        if not page.next_page_token:
            return events
        request.next_page_token = page.next_page_token


def most_in_a_second(times):
    return max(sum(begin <= other < begin + 1e9 for other in times) for begin in times)


@support.proves("H-010", "H-011")
def test_a_workflow_that_loops_is_slowed_down_and_completes(binary, folder):
    rate, count = 5, 12

    async def body(server):
        await register(server, "orders")
        async with Client(domain="orders", target=server.grpc) as client:
            async with Worker(client, LIST, registry):
                options = {
                    "task_list": LIST,
                    "execution_start_to_close_timeout": timedelta(minutes=5),
                }
                slow = await client.start_workflow("Loop", count, **options)
                began = time.monotonic()
                neighbour = await client.start_workflow("Loop", 1, **options)
                await read_history(client, neighbour)
                took = time.monotonic() - began
                events = await read_history(client, slow)
        print(f"   beside a loop that is slowed down another workflow took {took:.2f} s")
        assert events[-1].HasField("workflow_execution_completed_event_attributes"), events[-1]
        scheduled = sum(e.HasField("activity_task_scheduled_event_attributes") for e in events)
        assert scheduled == count
        starts = [
            e.event_time.ToNanoseconds()
            for e in events
            if e.HasField("decision_task_started_event_attributes")
            or e.HasField("activity_task_started_event_attributes")
        ]
        assert most_in_a_second(starts) <= 2 * rate, starts
        assert starts[-1] - starts[0] >= (len(starts) - 2 * rate) / rate * 1e9
        assert metric(server, "workflow_id_internal_requests_ratelimited", "orders") > 0
        failures = [
            e
            for e in events
            if e.HasField("activity_task_timed_out_event_attributes")
            or e.HasField("decision_task_timed_out_event_attributes")
        ]
        assert not failures, failures

    with serve(binary, folder, f"history.workflowIDInternalRPS: [{{value: {rate}}}]\n") as server:
        asyncio.run(body(server))


def test_the_hottest_ids_and_the_keys_are_shown(binary, folder):
    async def body(server):
        await register(server, "orders")
        address = ("--address", server.grpc, "--format", "json")

        async def storm(workflow_id, pause):
            calls = Storm(server)
            while True:
                await calls.one("orders", workflow_id)
                await asyncio.sleep(pause)

        async def ask():
            code, output, error = await asyncio.to_thread(
                support.run, binary, "admin", "hot-workflows", *address
            )
            assert code == 0, error
            return json.loads(output)

        storms = [asyncio.create_task(storm(*x)) for x in (("busy", 0.01), ("calm", 0.5))]
        end = time.monotonic() + support.LIMIT
        while len(hot := await ask()) < 2 or hot[0]["externalRate"] < 4:  # they have just begun
            assert time.monotonic() < end, hot
        for task in storms:
            task.cancel()
        assert [x["workflowId"] for x in hot] == ["busy", "calm"], hot
        assert not hot[0]["isExternalLimited"], hot
        code, output, _ = support.run(binary, "config", "keys", "--format", "json")
        keys = {x["key"]: x for x in json.loads(output)}
        assert code == 0 and keys["history.workflowIDExternalRPS"]["default"] == "2147483647"

    with serve(binary, folder, "{}") as server:
        asyncio.run(body(server))


if __name__ == "__main__":
    support.main(sys.modules[__name__])
