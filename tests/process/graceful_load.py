"""The load of a graceful failover: callers of both clusters, workers, what came of their calls."""

import asyncio
import collections
import contextlib
import logging
import re
import threading
import time
import uuid
from datetime import timedelta

import grpc
from cadence import activity, workflow
from cadence.api.v1 import (
    common_pb2,
    service_worker_pb2 as worker_api,
    service_workflow_pb2 as workflow_api,
    tasklist_pb2,
)
from cadence.client import Client
from cadence.worker import Registry, Worker
from google.protobuf import duration_pb2

from replication_test import DOMAIN

CALLERS = 4
RAW_WORKERS = 8
LIST, RAW_LIST, IDLE_LIST = "graceful", "raw", "nobody"
DEADLINE = 10  # seconds that a call may take
WORDS = 3  # that a workflow waits for
MINUTE = timedelta(minutes=1)
registry = Registry()
logging.getLogger("cadence").setLevel(logging.CRITICAL)  # workers are told that it is not active


# ---- workflows ----


@registry.activity()
async def beat(number: int) -> int:
    """Says three times that it is alive."""
    for step in range(3):
        activity.heartbeat(step)
        await asyncio.sleep(0.1)
    return number + 1


@registry.activity(name="raw")
async def raw(number: int) -> int:
    raise AssertionError("answered by RawWorkers")


@registry.workflow()
class Order:
    """Has two activities done, one of them elsewhere, and waits for words."""

    def __init__(self):
        self.heard = []

    @workflow.signal(name="say")
    def say(self, word: str) -> None:
        self.heard.append(word)

    @workflow.run
    async def run(self) -> str:
        options = {
            "schedule_to_close_timeout": 2 * MINUTE,
            "schedule_to_start_timeout": MINUTE,
            "start_to_close_timeout": MINUTE,
        }
        await beat.with_options(heartbeat_timeout=MINUTE, **options).execute(1)
        await raw.with_options(task_list=RAW_LIST, heartbeat_timeout=MINUTE, **options).execute(2)
        await workflow.wait_condition(lambda: len(self.heard) >= WORDS)
        return ",".join(self.heard)


# ---- counting ----


class Tally:
    """What came of calls, by method."""

    def __init__(self):
        self.lock = threading.Lock()
        self.done, self.failed, self.slowest = collections.Counter(), collections.Counter(), 0.0
        self.examples = []

    def note(self, method, error=None, seconds=0.0):
        with self.lock:
            self.slowest = max(self.slowest, seconds)
            if error is None:
                self.done[method] += 1
                return
            self.failed[method] += 1
            if len(self.examples) < 10:
                self.examples.append(f"{method}: {error}")

    def call(self, stub, method, request):
        begin = time.monotonic()
        try:
            answer = getattr(stub, method)(request, timeout=DEADLINE)
        except grpc.RpcError as error:
            self.note(method, f"{error.code()} {error.details()}", time.monotonic() - begin)
            return None
        self.note(method, None, time.monotonic() - begin)
        return answer


class Emitter:
    """Counts every attempt of the official client, the ones that it tries again, too."""

    def __init__(self, tally):
        self.tally = tally

    def with_tags(self, _):
        return self

    def counter(self, key, n=1, tags=None):
        found = re.fullmatch(r"cadence-(\w+)\.cadence-(\w+(?:-\w+)*)", key)
        method, what = found.groups() if found else ("", "")
        if not method.startswith(("Respond", "Record")) or what == "request":
            return
        for _ in range(n):
            self.tally.note(method, what)

    def gauge(self, key, value, tags=None):
        pass

    def histogram(self, key, value, tags=None):
        if key.startswith("cadence-Re") and ".cadence-latency" in key:
            self.tally.note(key[len("cadence-") :].split(".")[0])


# ---- load ----


def start_request(workflow_id, kind, task_list):
    return workflow_api.StartWorkflowExecutionRequest(
        domain=DOMAIN,
        workflow_id=workflow_id,
        workflow_type=common_pb2.WorkflowType(name=kind),
        task_list=tasklist_pb2.TaskList(name=task_list),
        execution_start_to_close_timeout=duration_pb2.Duration(seconds=600),
        task_start_to_close_timeout=duration_pb2.Duration(seconds=10),
        request_id=str(uuid.uuid4()),
    )


def word_of(number):
    return common_pb2.Payload(data=f'"{number}"'.encode())


class Callers:
    """Threads that call both clusters in turn until they are told to stop."""

    def __init__(self, sides, tally):
        self.sides, self.tally, self.orders = sides, tally, []
        self.is_over = threading.Event()
        self.threads = [
            threading.Thread(target=self.run, args=(number,), daemon=True)
            for number in range(CALLERS)
        ]

    def call(self, cluster, method, request):
        return self.tally.call(self.sides[cluster % 2].workflows, method, request)

    def say(self, cluster, name, number):
        self.call(
            cluster,
            "SignalWorkflowExecution",
            workflow_api.SignalWorkflowExecutionRequest(
                domain=DOMAIN,
                workflow_execution=common_pb2.WorkflowExecution(workflow_id=name),
                signal_name="say",
                signal_input=word_of(number),
                request_id=str(uuid.uuid4()),
            ),
        )

    def order(self, turn, name):
        """By a start, or by a signal that starts it."""
        start = start_request(name, "Order", LIST)
        if turn % 2:
            self.call(turn, "StartWorkflowExecution", start)
            self.say(turn + 1, name, 0)
        else:
            self.call(
                turn,
                "SignalWithStartWorkflowExecution",
                workflow_api.SignalWithStartWorkflowExecutionRequest(
                    start_request=start, signal_name="say", signal_input=word_of(0)
                ),
            )
        for number in range(1, WORDS):
            self.say(turn + number, name, number)
        self.orders.append(name)

    def idle(self, turn, name):
        """A workflow that nobody works on: started, cancelled, terminated."""
        execution = common_pb2.WorkflowExecution(workflow_id=name)
        self.call(turn, "StartWorkflowExecution", start_request(name, "Idle", IDLE_LIST))
        self.call(
            turn + 1,
            "RequestCancelWorkflowExecution",
            workflow_api.RequestCancelWorkflowExecutionRequest(
                domain=DOMAIN, workflow_execution=execution, request_id=str(uuid.uuid4())
            ),
        )
        self.call(
            turn,
            "TerminateWorkflowExecution",
            workflow_api.TerminateWorkflowExecutionRequest(
                domain=DOMAIN, workflow_execution=execution, reason="enough"
            ),
        )

    def run(self, number):
        turn = number
        while not self.is_over.is_set():
            if turn % 3 == 0:
                self.order(turn, f"order-{number}-{turn}")
            else:
                self.idle(turn, f"idle-{number}-{turn}")
            turn += 1
            time.sleep(0.05)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


class RawWorkers:
    """Take activities from one cluster, and answer them at both in turn."""

    def __init__(self, sides, tally):
        self.sides, self.tally, self.is_over = sides, tally, threading.Event()
        self.threads = [
            threading.Thread(target=self.run, args=(number % 2, number), daemon=True)
            for number in range(RAW_WORKERS)
        ]

    def poll(self, cluster):
        with contextlib.suppress(grpc.RpcError):
            return self.sides[cluster].workers.PollForActivityTask(
                worker_api.PollForActivityTaskRequest(
                    domain=DOMAIN, task_list=tasklist_pb2.TaskList(name=RAW_LIST), identity="raw"
                ),
                timeout=2,
            )

    def work(self, cluster, turn, task):
        def call(other, method, **fields):
            stub = self.sides[(cluster + other) % 2].workers
            request = getattr(worker_api, f"{method}Request")(**fields)
            self.tally.call(stub, method, request)

        by_id = {
            "domain": DOMAIN,
            "workflow_execution": task.workflow_execution,
            "activity_id": task.activity_id,
        }
        for other in (0, 1):
            call(other + turn, "RecordActivityTaskHeartbeat", task_token=task.task_token)
            call(other + turn, "RecordActivityTaskHeartbeatByID", **by_id)
            time.sleep(0.02)
        result = common_pb2.Payload(data=b"3")
        if turn % 2:
            call(
                turn // 2,
                "RespondActivityTaskCompleted",
                task_token=task.task_token,
                result=result,
            )
        else:
            call(turn // 2, "RespondActivityTaskCompletedByID", result=result, **by_id)

    def run(self, cluster, turn):
        while not self.is_over.is_set():
            task = self.poll(cluster)
            if task is not None and task.task_token:
                self.work(cluster, turn, task)
                turn += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


class PythonWorkers:
    """The official client's workers, one of each cluster, on a loop of their own."""

    def __init__(self, clusters, tally):
        self.clusters, self.tally = clusters, tally
        self.loop, self.ready = asyncio.new_event_loop(), threading.Event()
        self.over = asyncio.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    async def work(self):
        async with contextlib.AsyncExitStack() as stack:
            for cluster in self.clusters:
                client = await stack.enter_async_context(
                    Client(domain=DOMAIN, target=cluster.grpc, metrics_emitter=Emitter(self.tally))
                )
                await stack.enter_async_context(Worker(client, LIST, registry))
            self.ready.set()
            await self.over.wait()

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self.work())

    def __enter__(self):
        self.thread.start()
        self.ready.wait()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join()
