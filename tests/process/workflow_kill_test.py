"""Workflows with real workers while the server is killed, again and again.

Twenty times kill -9 under load, on the same data folder: workflows with activities, signals,
timers, and children that fail and are tried again; one runs by a schedule all the while. Then every
workflow has ended well, every call that was acknowledged is in a history exactly once, and none
twice."""

import asyncio
import collections
import random
import sys
from datetime import timedelta

from cadence import workflow
from cadence.api.v1 import service_domain_pb2 as domain_api, service_workflow_pb2 as workflow_api
from cadence.api.v1 import workflow_pb2
from cadence.client import Client
from cadence.worker import Registry, Worker
from google.protobuf import duration_pb2

import support

KILLS = 20
IN_FLIGHT = 6
SIGNALS = 3
LIST = "kill-list"
FAST_RECONNECT = {
    "grpc.initial_reconnect_backoff_ms": 50,
    "grpc.min_reconnect_backoff_ms": 50,
    "grpc.max_reconnect_backoff_ms": 200,
}
ATTEMPTS = {
    "initial_interval": timedelta(seconds=1),
    "backoff_coefficient": 1.0,
    "maximum_attempts": 100,
}
TICKS = "ticks"
registry = Registry()
tries = collections.Counter()  # how often the worker came by


@registry.activity()
async def step(number: int) -> int:
    return number + 1


@registry.activity()
async def try_once(name: str) -> int:
    tries[name] += 1
    return tries[name]


async def work(activity, argument):
    options = activity.with_options(
        schedule_to_close_timeout=timedelta(minutes=5),
        start_to_close_timeout=timedelta(seconds=2),
        retry_policy=ATTEMPTS,
    )
    return await options.execute(argument)


@registry.workflow()
class Tick:
    """One run of a schedule."""

    @workflow.run
    async def run(self) -> int:
        return await work(step, 0)


@registry.workflow()
class Part:
    """A child that fails at first: its parent hears only of the attempt that was good."""

    @workflow.run
    async def run(self, name: str) -> str:
        if await work(try_once, name) < 2:
            raise ValueError("not yet")
        return name


@registry.workflow()
class Order:
    """An activity, a child, some signals, a timer, an activity: its result names the signals."""

    def __init__(self):
        self.heard = []

    @workflow.run
    async def run(self, count: int, part: str) -> str:
        number = await work(step, 0)
        await workflow.execute_child_workflow(
            "Part",
            str,
            part,
            workflow_id=part,
            execution_start_to_close_timeout=timedelta(minutes=5),
            task_start_to_close_timeout=timedelta(seconds=2),
            retry_policy=ATTEMPTS,
        )
        await workflow.wait_condition(lambda: len(self.heard) >= count)
        await workflow.sleep(timedelta(seconds=1))
        await work(step, number)
        return ",".join(sorted(self.heard))

    @workflow.signal(name="say")
    def say(self, word: str) -> None:
        self.heard.append(word)


class Load:
    """Starts workflows and signals them; notes what was acknowledged."""

    def __init__(self, client):
        self.client = client
        self.is_over = False
        self.started = {}  # workflow id → run id, acknowledged
        self.signalled = collections.defaultdict(list)  # workflow id → words, acknowledged

    async def until_acknowledged(self, call):
        """Retries a call for ever: what it returns was acknowledged."""
        while True:
            try:
                return await call()
            except Exception:
                await asyncio.sleep(0.05)

    async def signal(self, name, word):
        """The client sends each try of a call with the same request id; a new call is a new one."""
        try:
            await self.client.signal_workflow(name, "", "say", word)
            self.signalled[name].append(word)
            return True
        except Exception:
            return False

    async def run(self, number):
        turn = 0
        while not self.is_over:
            name = f"order-{number}-{turn}"
            turn += 1
            await self.start(name, "Order", SIGNALS, f"{name}-part")
            sent = 0
            while len(self.signalled[name]) < SIGNALS:
                await self.signal(name, f"{name}.{sent}")
                sent += 1

    async def start(self, name, kind, *arguments, **options):
        async def call():
            return await self.client.start_workflow(
                kind,
                *arguments,
                workflow_id=name,
                task_list=LIST,
                execution_start_to_close_timeout=timedelta(minutes=10),
                task_start_to_close_timeout=timedelta(seconds=2),
                **options,
            )

        async def described():
            """A start whose answer was lost is there all the same, under its id."""
            try:
                return await call()
            except Exception:
                answer = await self.client.workflow_stub.DescribeWorkflowExecution(
                    workflow_api.DescribeWorkflowExecutionRequest(
                        domain="orders", workflow_execution={"workflow_id": name}
                    )
                )
                return answer.workflow_execution_info.workflow_execution

        self.started[name] = (await self.until_acknowledged(described)).run_id


async def history(client, name, run_id):
    events, token = [], b""
    while True:
        page = await client.workflow_stub.GetWorkflowExecutionHistory(
            workflow_api.GetWorkflowExecutionHistoryRequest(
                domain="orders",
                workflow_execution={"workflow_id": name, "run_id": run_id},
                next_page_token=token,
            )
        )
        events.extend(page.history.events)
        token = page.next_page_token
        if not token:
            return events


def is_signal(event):
    return event.HasField("workflow_execution_signaled_event_attributes")


def word_of(event):
    data = event.workflow_execution_signaled_event_attributes.input.data
    return data.decode().strip().strip('"')


async def verify(client, load):
    """Every acknowledged start and signal is in its history once; every run has ended well."""

    async def is_closed(name, run_id):
        events = await history(client, name, run_id)
        return events[-1].HasField("workflow_execution_completed_event_attributes"), events

    for name, run_id in load.started.items():
        if name == TICKS:
            continue
        closed, events = await is_closed(name, run_id)
        for _ in range(support.LIMIT * 10):
            if closed:
                break
            await asyncio.sleep(0.1)
            closed, events = await is_closed(name, run_id)
        assert closed, f"{name} has not ended: {events[-1]}"
        assert [event.event_id for event in events] == list(range(1, len(events) + 1))
        words = collections.Counter(word_of(event) for event in events if is_signal(event))
        for word in load.signalled[name]:
            assert words[word] == 1, f"{name}: {word} is {words[word]} times in the history"
        assert not words or max(words.values()) == 1, words
        parts = collections.Counter(event.WhichOneof("attributes") for event in events)
        for what in ("started", "completed"):
            assert parts[f"child_workflow_execution_{what}_event_attributes"] == 1, (name, parts)


async def verify_ticks(client, run_id):
    """The schedule runs until it is terminated; each run follows one that did its work."""
    await client.workflow_stub.TerminateWorkflowExecution(
        workflow_api.TerminateWorkflowExecutionRequest(
            domain="orders", workflow_execution={"workflow_id": TICKS}
        )
    )
    runs = []
    while run_id:
        assert run_id not in runs
        runs.append(run_id)
        events = await history(client, TICKS, run_id)
        continued = events[-1].workflow_execution_continued_as_new_event_attributes
        run_id = continued.new_execution_run_id
        if run_id:
            assert continued.initiator == workflow_pb2.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE
            assert continued.last_completion_result.data.decode().strip() == "1", continued
    assert events[-1].HasField("workflow_execution_terminated_event_attributes"), events[-1]
    return len(runs)


async def kill_and_restart(server, chance):
    await asyncio.sleep(chance.uniform(0.2, 1.5))
    server.kill()
    server.launch()
    while not await asyncio.to_thread(server.is_ready):
        await asyncio.sleep(0.01)


async def storm(server):
    chance = random.Random(7)
    async with Client(
        domain="orders", target=server.grpc, channel_arguments=FAST_RECONNECT
    ) as client:
        await client.domain_stub.RegisterDomain(
            domain_api.RegisterDomainRequest(
                name="orders",
                workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
            )
        )
        load = Load(client)
        async with Worker(client, LIST, registry):
            await load.start(TICKS, "Tick", cron_schedule="@every 1s")
            runners = [asyncio.create_task(load.run(number)) for number in range(IN_FLIGHT)]
            for _ in range(KILLS):
                await kill_and_restart(server, chance)
            load.is_over = True
            await asyncio.wait_for(asyncio.gather(*runners), support.LIMIT)
            await verify(client, load)
            ticks = await verify_ticks(client, load.started[TICKS])
        signals = sum(len(words) for words in load.signalled.values())
        print(
            f"{KILLS} kills, {len(load.started)} workflows, {signals} signals acknowledged, "
            f"{ticks} runs of a schedule"
        )
        assert len(load.started) >= KILLS and ticks >= 3


def test_workflows_survive_twenty_kills(binary, folder):
    with support.Server(binary, folder / "data") as server:
        asyncio.run(storm(server))


if __name__ == "__main__":
    support.main(sys.modules[__name__])
