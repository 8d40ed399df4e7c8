"""Workflows in groups of real processes: copied to other clusters, failed over while they run."""

import asyncio
import contextlib
import logging
import os
import socket
import statistics
import sys
import threading
import time
import uuid
from datetime import timedelta

import grpc
from cadence import workflow
from cadence.api.v1 import (
    common_pb2,
    history_pb2,
    query_pb2,
    service_worker_pb2 as worker_api,
    service_worker_pb2_grpc as worker_stub,
    service_workflow_pb2 as workflow_api,
    service_workflow_pb2_grpc as workflow_stub,
    tasklist_pb2,
)
from cadence.client import Client
from cadence.worker import Registry, Worker
from google.protobuf import duration_pb2

import group_test
import support

DOMAIN = "orders"
LIST = "replicated"
MINUTE = timedelta(minutes=1)
WORKFLOWS = 200
FAILOVERS = 10
LAGS = 200
registry = Registry()
logging.getLogger("cadence").setLevel(logging.CRITICAL)  # workers of a passive cluster are refused


@registry.activity()
async def add_one(number: int) -> int:
    return number + 1


@registry.workflow()
class Steps:
    """Sleeps and works in turn, for some seconds."""

    def __init__(self):
        self.number = 0

    @workflow.query(name="number")
    def ask_number(self) -> int:
        return self.number

    @workflow.run
    async def run(self, count: int) -> int:
        for _ in range(count):
            await workflow.sleep(timedelta(seconds=1))
            self.number = await add_one.with_options(
                schedule_to_close_timeout=MINUTE,
                start_to_close_timeout=timedelta(seconds=5),
                retry_policy={
                    "initial_interval": timedelta(seconds=1),
                    "backoff_coefficient": 1.0,
                    "maximum_attempts": 20,
                },
            ).execute(self.number)
        return self.number


# ---- calls ----


class Side:
    """What a test asks of one cluster."""

    def __init__(self, cluster):
        channel = grpc.insecure_channel(cluster.grpc)
        self.cluster = cluster
        self.workflows = workflow_stub.WorkflowAPIStub(channel)
        self.workers = worker_stub.WorkerAPIStub(channel)

    def start(self, workflow_id):
        return self.workflows.StartWorkflowExecution(
            workflow_api.StartWorkflowExecutionRequest(
                domain=DOMAIN,
                workflow_id=workflow_id,
                workflow_type=common_pb2.WorkflowType(name="scripted"),
                task_list=tasklist_pb2.TaskList(name=LIST),
                execution_start_to_close_timeout=duration_pb2.Duration(seconds=600),
                task_start_to_close_timeout=duration_pb2.Duration(seconds=10),
                request_id=str(uuid.uuid4()),
            ),
            timeout=support.LIMIT,
        ).run_id

    def signal(self, workflow_id, name):
        self.workflows.SignalWorkflowExecution(
            workflow_api.SignalWorkflowExecutionRequest(
                domain=DOMAIN,
                workflow_execution=common_pb2.WorkflowExecution(workflow_id=workflow_id),
                signal_name=name,
                request_id=str(uuid.uuid4()),
            ),
            timeout=support.LIMIT,
        )

    def query(self, workflow_id):
        """The number that a worker tells."""
        answer = self.workflows.QueryWorkflow(
            workflow_api.QueryWorkflowRequest(
                domain=DOMAIN,
                workflow_execution=common_pb2.WorkflowExecution(workflow_id=workflow_id),
                query=query_pb2.WorkflowQuery(query_type="number"),
            ),
            timeout=support.LIMIT,
        )
        return int(answer.query_result.data.decode())

    def poll(self, timeout=support.LIMIT):
        return self.workers.PollForDecisionTask(
            worker_api.PollForDecisionTaskRequest(
                domain=DOMAIN, task_list=tasklist_pb2.TaskList(name=LIST), identity="test"
            ),
            timeout=timeout,
        )

    def complete(self, task):
        self.workers.RespondDecisionTaskCompleted(
            worker_api.RespondDecisionTaskCompletedRequest(task_token=task.task_token),
            timeout=support.LIMIT,
        )

    def history(self, workflow_id, run_id=""):
        """All events of a run; None while it is not here."""
        events, token = [], b""
        while True:
            try:
                page = self.workflows.GetWorkflowExecutionHistory(
                    workflow_api.GetWorkflowExecutionHistoryRequest(
                        domain=DOMAIN,
                        workflow_execution=common_pb2.WorkflowExecution(
                            workflow_id=workflow_id, run_id=run_id
                        ),
                        next_page_token=token,
                    ),
                    timeout=support.LIMIT,
                )
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.NOT_FOUND, error
                return None
            events += page.history.events
            token = page.next_page_token
            if not token:
                return events


def kinds(events):
    return [e.WhichOneof("attributes").removesuffix("_event_attributes") for e in events]


def same(sides, workflow_id):
    found = [side.history(workflow_id) for side in sides]
    return all(found) and all(f == found[0] for f in found) and found[0]


def until_same(sides, workflow_id):
    return support.wait_until(lambda: same(sides, workflow_id), f"{workflow_id} to be the same")


@contextlib.contextmanager
def two_clusters(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        group_test.register(clusters, DOMAIN)
        group_test.until_same(clusters, DOMAIN)
        yield clusters, [Side(cluster) for cluster in clusters]


# ---- a way between two clusters that can be cut ----


class Proxy:
    """Passes bytes on to a port, unless it is cut."""

    def __init__(self, port):
        self.target, self.is_cut, self.links = port, False, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if self.is_cut:
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            self.links += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(one, other), daemon=True).start()

    @staticmethod
    def pump(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        self.is_cut = True
        for link in self.links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        self.links = []

    def heal(self):
        self.is_cut = False


# ---- the tests ----


@contextlib.asynccontextmanager
async def workers_of(clusters):
    """A client of each cluster, with a worker that polls there."""
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for cluster in clusters:
            client = Client(domain=DOMAIN, target=cluster.grpc)
            clients.append(await stack.enter_async_context(client))
        for client in clients:
            await stack.enter_async_context(Worker(client, LIST, registry))
        yield clients


async def start_steps(client, workflow_id, count):
    await client.start_workflow(
        "Steps",
        count,
        workflow_id=workflow_id,
        task_list=LIST,
        execution_start_to_close_timeout=timedelta(minutes=5),
    )


@support.proves("E-026", "E-032", "E-041")
def test_running_workflows_survive_failovers_there_and_back(binary, folder):
    async def work(clusters, sides):
        async with workers_of(clusters) as clients:
            for number in range(WORKFLOWS):
                await start_steps(clients[0], f"w{number}", 5)
            loop = asyncio.get_running_loop()
            for target in (1, 0):
                await asyncio.sleep(2)
                await loop.run_in_executor(
                    None, clusters[target].failover, DOMAIN, clusters[target].name
                )
            return await loop.run_in_executor(None, check, sides)

    def check(sides):
        versions = set()
        for number in range(WORKFLOWS):
            name = f"w{number}"
            support.wait_until(
                lambda: kinds(sides[0].history(name))[-1] == "workflow_execution_completed",
                f"{name} to end",
                limit=120,
            )
            events = until_same(sides, name)
            result = events[-1].workflow_execution_completed_event_attributes.result.data
            assert result.decode().strip() == "5", result
            versions |= {event.version for event in events}
        assert len(versions) >= 2, versions

    with two_clusters(binary, folder) as (clusters, sides):
        asyncio.run(work(clusters, sides))


@support.proves("E-031")
def test_queries_are_answered_in_both_clusters_before_and_after_a_failover(binary, folder):
    def ask(sides, least):
        for side in sides:
            support.wait_until(lambda: side.query("w") >= least, f"the number to be {least}")

    async def work(clusters, sides):
        async with workers_of(clusters) as clients:
            await start_steps(clients[0], "w", 60)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, support.wait_until, lambda: sides[1].history("w"), "w")
            await loop.run_in_executor(None, ask, sides, 1)
            await loop.run_in_executor(None, clusters[1].failover, DOMAIN, "cluster1")
            await loop.run_in_executor(None, ask, sides, 4)

    with two_clusters(binary, folder) as (clusters, sides):
        asyncio.run(work(clusters, sides))


@support.proves("J-012")
def test_what_both_sides_of_a_cut_took_is_in_both_clusters_afterwards(binary, folder):
    ports = [(support.free_port(), support.free_port()) for _ in range(2)]
    proxies = [Proxy(grpc_port) for grpc_port, _ in ports]
    clusters = []
    with contextlib.ExitStack() as stack:
        for number in range(2):
            cluster = group_test.Cluster(binary, folder, number, ports)
            config = folder / f"{cluster.name}.yaml"
            other = 1 - number
            text = config.read_text()
            config.write_text(
                text.replace(f"127.0.0.1:{ports[other][0]}", f"127.0.0.1:{proxies[other].port}")
            )
            clusters.append(stack.enter_context(cluster))
        group_test.register(clusters, DOMAIN)
        group_test.until_same(clusters, DOMAIN)
        sides = [Side(cluster) for cluster in clusters]
        sides[0].start("w")
        sides[0].complete(sides[0].poll())
        until_same(sides, "w")
        for proxy in proxies:
            proxy.cut()
        clusters[1].failover(DOMAIN, "cluster1")
        sides[0].signal("w", "old")
        sides[1].signal("w", "new")
        sides[1].complete(sides[1].poll())
        for proxy in proxies:
            proxy.heal()

        def both():
            events = same(sides, "w")
            names = [
                e.workflow_execution_signaled_event_attributes.signal_name for e in events or []
            ]
            return "old" in names and "new" in names and names.count("old") == 1

        support.wait_until(both, "both signals to be in both clusters")


def test_how_fast_a_failover_is(binary, folder):
    """Prints the time to the first decision in the new cluster, with polls parked in both."""
    times = []
    with two_clusters(binary, folder) as (clusters, sides):
        sides[0].start("w")
        task = sides[0].poll()
        sides[0].complete(task)
        for number in range(FAILOVERS):
            target = 1 - number % 2
            sides[1 - target].signal("w", f"s{number}")
            until_same(sides, "w")
            answers = []
            thread = threading.Thread(target=lambda: answers.append(sides[target].poll()))
            thread.start()
            time.sleep(0.3)
            begin = time.monotonic()
            clusters[target].failover(DOMAIN, clusters[target].name)
            thread.join()
            times.append((time.monotonic() - begin) * 1e3)
            assert answers[0].task_token
            sides[target].complete(answers[0])
    print(
        f"    first decision after a failover: median {statistics.median(times):.1f} ms, "
        f"slowest {max(times):.1f} ms"
    )
    assert max(times) < 10_000


def start_until(side, stop, taken):
    """Starts workflows as fast as answers come, and notes when each was taken."""
    while not stop.is_set():
        workflow_id = str(uuid.uuid4())
        try:
            side.start(workflow_id)
        except grpc.RpcError:
            continue
        taken.append((time.monotonic(), workflow_id))


def test_how_long_both_clusters_take_starts_or_neither(binary, folder):
    """Prints for how long starts are taken under both versions of a failover, or under none."""
    both, neither = [], []
    with two_clusters(binary, folder) as (clusters, sides):
        for number in range(FAILOVERS):
            target = 1 - number % 2
            taken, stop = [], threading.Event()
            threads = [
                threading.Thread(target=start_until, args=(side, stop, taken)) for side in sides
            ]
            for thread in threads:
                thread.start()
            time.sleep(0.3)
            clusters[target].failover(DOMAIN, clusters[target].name)
            time.sleep(0.5)
            stop.set()
            for thread in threads:
                thread.join()
            times = {}
            for moment, workflow_id in taken:
                until_same(sides, workflow_id)
                times.setdefault(sides[0].history(workflow_id)[0].version, []).append(moment)
            assert len(times) == 2, times.keys()
            last, first = max(times[min(times)]), min(times[max(times)])
            both.append(max(0, last - first) * 1e3)
            neither.append(max(0, first - last) * 1e3)
    print(
        f"    starts are taken by both clusters: median {statistics.median(both):.1f} ms, "
        f"longest {max(both):.1f} ms; by neither: median {statistics.median(neither):.1f} ms, "
        f"longest {max(neither):.1f} ms"
    )
    assert max(both) < 10_000 and max(neither) < 10_000


@contextlib.contextmanager
def steady_signals(side, rate):
    """Signals other workflows, so many a second; yields a list of what was answered."""
    names = [f"paced{number}" for number in range(20)]
    for name in names:
        side.start(name)
    answered, stop = [], threading.Event()

    def send():
        begin, sent = time.monotonic(), 0
        while not stop.is_set():
            due = int((time.monotonic() - begin) * rate)
            for number in range(sent, due):
                side.workflows.SignalWorkflowExecution.future(
                    workflow_api.SignalWorkflowExecutionRequest(
                        domain=DOMAIN,
                        workflow_execution=common_pb2.WorkflowExecution(
                            workflow_id=names[number % len(names)]
                        ),
                        signal_name="paced",
                    ),
                    timeout=support.LIMIT,
                ).add_done_callback(lambda call: answered.append(time.monotonic()))
            sent = due
            time.sleep(0.005)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield answered
    finally:
        stop.set()
        thread.join()


def test_how_far_a_cluster_is_behind(binary, folder):
    """Prints the time from the answer of a signal in one cluster to its event in the other."""
    with two_clusters(binary, folder) as (_, sides):
        measure_lags(sides, LAGS, "alone")


def measure_lag_under_load(binary, folder):
    """The same beside LAG_RATE signals a second; for benches, on a quiet machine."""
    rate = int(os.environ.get("LAG_RATE", "0"))
    with two_clusters(binary, folder) as (_, sides), steady_signals(sides[0], rate) as answered:
        begin, before = time.monotonic(), len(answered)
        measure_lags(sides, LAGS, "under load")
        seconds = time.monotonic() - begin
        print(f"    beside {(len(answered) - before) / seconds:.0f} events/s")


if os.environ.get("LAG_RATE"):
    test_lag_under_load = measure_lag_under_load


def measure_lags(sides, count, what):
    lags = []
    run_id = sides[0].start("w")
    support.wait_until(lambda: sides[1].history("w"), "the run to be there")
    next_id = len(sides[1].history("w")) + 1
    for number in range(count):
        waiting = sides[1].workflows.GetWorkflowExecutionHistory.future(
            workflow_api.GetWorkflowExecutionHistoryRequest(
                domain=DOMAIN,
                workflow_execution=common_pb2.WorkflowExecution(workflow_id="w", run_id=run_id),
                wait_for_new_event=True,
                history_event_filter_type=history_pb2.EVENT_FILTER_TYPE_ALL_EVENT,
                next_page_token=last_token(sides[1], run_id, next_id),
            ),
            timeout=support.LIMIT,
        )
        sides[0].signal("w", f"s{number}")
        begin = time.monotonic()
        waiting.result()
        lags.append((time.monotonic() - begin) * 1e3)
        next_id = len(sides[1].history("w")) + 1
    lags.sort()
    print(
        f"    seen in the other cluster after ({what}): median {statistics.median(lags):.1f} ms, "
        f"99 % {lags[int(len(lags) * 0.99) - 1]:.1f} ms"
    )
    assert statistics.median(lags) < 1000


def last_token(side, run_id, _):
    """A token that waits for what comes behind all that is there now."""
    token = b""
    while True:
        page = side.workflows.GetWorkflowExecutionHistory(
            workflow_api.GetWorkflowExecutionHistoryRequest(
                domain=DOMAIN,
                workflow_execution=common_pb2.WorkflowExecution(workflow_id="w", run_id=run_id),
                wait_for_new_event=True,
                next_page_token=token,
            ),
            timeout=support.LIMIT,
        )
        token = page.next_page_token
        if page.history.events:
            return token


if __name__ == "__main__":
    support.main(sys.modules[__name__])
