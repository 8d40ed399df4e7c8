"""Workflows that concern each other while the server is killed, again and again.

Twenty times kill -9 on the same data folder, under children, signals between workflows, queries and
resets. Then no parent and no child is left waiting, and what was done was done once."""

import asyncio
import collections
import random
import sys
import uuid
from datetime import timedelta

from cadence import workflow
from cadence.api.v1 import service_domain_pb2 as domain_api, service_workflow_pb2 as workflow_api
from cadence.client import Client
from cadence.worker import Registry, Worker
from google.protobuf import duration_pb2

import support
from workflow_kill_test import FAST_RECONNECT, LIST, history, is_signal, kill_and_restart, word_of

KILLS = 20
IN_FLIGHT = 3
CHILDREN = 2
MAILBOX = "mailbox"
LONG = timedelta(minutes=10)
registry = Registry()


# ---- the workflows ----


@registry.workflow()
class Kid:
    """Waits for a word and gives it back."""

    def __init__(self):
        self.heard = []

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self.heard)
        return self.heard[0]

    @workflow.signal(name="say")
    def say(self, word: str) -> None:
        self.heard.append(word)


@registry.workflow()
class Family:
    """Has children, says a word to each and to the mailbox, and waits for all of them."""

    @workflow.run
    async def run(self, name: str, count: int) -> str:
        kids = []
        for number in range(count):
            kid = await workflow.start_child_workflow(
                "Kid",
                str,
                workflow_id=f"{name}-kid-{number}",
                execution_start_to_close_timeout=LONG,
                task_start_to_close_timeout=timedelta(seconds=2),
            )
            await kid.signal("say", f"{name}.{number}")
            kids.append(kid)
        await workflow.signal_external_workflow(MAILBOX, "say", name)
        return ",".join([await kid for kid in kids])


@registry.workflow()
class Listener:
    """Tells the words that it has heard until one of them is the last."""

    def __init__(self):
        self.heard = []

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: "end" in self.heard)
        return ",".join(self.heard)

    @workflow.signal(name="say")
    def say(self, word: str) -> None:
        self.heard.append(word)

    @workflow.query(name="words")
    def words(self) -> str:
        return ",".join(self.heard)


# ---- the load ----


class Load:
    """Notes what was acknowledged."""

    def __init__(self, client):
        self.client, self.is_over = client, False
        self.families = {}  # workflow id → run id
        self.listeners = []  # (workflow id, run id, words acknowledged, run id after a reset)
        self.answers = 0

    async def insist(self, call):
        """Retries a call until it is acknowledged."""
        while True:
            try:
                return await call()
            except Exception:
                await asyncio.sleep(0.05)

    async def start(self, kind, name, *arguments):
        """The run id; a start whose answer was lost is found under its id."""

        async def call():
            options = {"task_list": LIST, "execution_start_to_close_timeout": LONG}
            options["task_start_to_close_timeout"] = timedelta(seconds=2)
            try:
                started = await self.client.start_workflow(
                    kind, *arguments, workflow_id=name, **options
                )
                return started.run_id
            except Exception:
                described = await self.client.workflow_stub.DescribeWorkflowExecution(
                    workflow_api.DescribeWorkflowExecutionRequest(
                        domain="orders", workflow_execution={"workflow_id": name}
                    )
                )
                return described.workflow_execution_info.workflow_execution.run_id

        return await self.insist(call)

    async def run_families(self, number):
        turn = 0
        while not self.is_over:
            name = f"family-{number}-{turn}"
            turn += 1
            self.families[name] = await self.start("Family", name, name, CHILDREN)
            await asyncio.sleep(0.3)

    async def say(self, name, word):
        """True: acknowledged. A call that failed may have been done all the same."""
        try:
            await self.client.signal_workflow(name, "", "say", word)
            return True
        except Exception:
            return False

    async def ask(self, name):
        """An answer is what the run has heard, each word once; none says nothing."""
        try:
            answer = await asyncio.wait_for(self.client.query_workflow(name, "", "words"), 10)
        except Exception:
            return
        words = answer.split(",") if answer else []
        assert len(words) == len(set(words)), (name, words)
        order = [("one", "two", "three").index(word.split("-")[0]) for word in words]
        assert order == sorted(order), (name, words)
        self.answers += 1

    async def reset(self, name, run_id):
        """The run after the reset to the first decision; a repeated request makes no second one."""
        events = await self.insist(lambda: history(self.client, name, run_id))
        first = next(
            event.event_id
            for event in events
            if event.HasField("decision_task_completed_event_attributes")
        )
        request = workflow_api.ResetWorkflowExecutionRequest(
            domain="orders",
            workflow_execution={"workflow_id": name, "run_id": run_id},
            reason="a test",
            decision_finish_event_id=first,
            request_id=str(uuid.uuid4()),
        )

        async def call():
            return (await self.client.workflow_stub.ResetWorkflowExecution(request)).run_id

        runs = {await self.insist(call) for _ in range(2)}
        assert len(runs) == 1, runs
        return runs.pop()

    async def wait_for_end(self, name, run_id):
        while True:
            events = await self.insist(lambda: history(self.client, name, run_id))
            if "completed" in close_of(events):
                return events
            assert close_of(events) == "", (name, events[-1])
            await asyncio.sleep(0.1)

    async def run_listeners(self, number):
        turn = 0
        while not self.is_over:
            name = f"listener-{number}-{turn}"
            turn += 1
            run_id, known = await self.start("Listener", name), []
            for word in ("one", "two", "three"):
                for attempt in range(1000):
                    if await self.say(name, f"{word}-{attempt}"):
                        known.append(f"{word}-{attempt}")
                        break
                    await asyncio.sleep(0.05)
                await self.ask(name)
            while not await self.say(name, "end"):
                await asyncio.sleep(0.05)
            await self.wait_for_end(name, run_id)
            self.listeners.append((name, run_id, known, await self.reset(name, run_id)))


def close_of(events):
    """How a run ended; "": it is open."""
    kind = events[-1].WhichOneof("attributes").removesuffix("_event_attributes")
    closes = ("completed", "failed", "canceled", "terminated", "timed_out", "continued_as_new")
    is_close = any(kind == f"workflow_execution_{close}" for close in closes)
    return kind if is_close else ""


# ---- what has to hold ----


def words_of(events):
    return collections.Counter(word_of(event) for event in events if is_signal(event))


def count(events, kind):
    return sum(event.WhichOneof("attributes") == f"{kind}_event_attributes" for event in events)


async def verify_families(load):
    """Each family has ended; its children were started once and heard their word once."""
    for name, run_id in load.families.items():
        events = await asyncio.wait_for(load.wait_for_end(name, run_id), support.LIMIT)
        assert [event.event_id for event in events] == list(range(1, len(events) + 1))
        for kind in ("started", "completed"):
            assert count(events, f"child_workflow_execution_{kind}") == CHILDREN, (name, kind)
        for number in range(CHILDREN):
            kid = await history(load.client, f"{name}-kid-{number}", "")
            assert words_of(kid) == {f"{name}.{number}": 1}, (name, number, words_of(kid))


async def verify_mailbox(load, run_id):
    """Each family's word is there once."""
    while not await load.say(MAILBOX, "end"):
        await asyncio.sleep(0.05)
    events = await asyncio.wait_for(load.wait_for_end(MAILBOX, run_id), support.LIMIT)
    words = words_of(events)
    assert {word for word in words if word != "end"} == set(load.families), words
    assert all(words[name] == 1 for name in load.families), words


async def verify_listeners(load):
    """What was acknowledged is there once, and again in the run that a reset made."""
    for name, run_id, known, second in load.listeners:
        events = await history(load.client, name, run_id)
        again = await asyncio.wait_for(load.wait_for_end(name, second), support.LIMIT)
        for word in known:
            assert words_of(events)[word] == 1 and words_of(again)[word] == 1, (name, word)
        assert count(again, "decision_task_failed") >= 1, again  # the reset itself


async def register_domain(client):
    await client.domain_stub.RegisterDomain(
        domain_api.RegisterDomainRequest(
            name="orders",
            workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
        )
    )


async def storm(server):
    chance = random.Random(11)
    options = {"domain": "orders", "target": server.grpc, "channel_arguments": FAST_RECONNECT}
    async with Client(**options) as client:
        await register_domain(client)
        load = Load(client)
        async with Worker(client, LIST, registry):
            mailbox = await load.start("Listener", MAILBOX)
            runners = [
                asyncio.create_task(run(number))
                for number in range(IN_FLIGHT)
                for run in (load.run_families, load.run_listeners)
            ]
            for _ in range(KILLS):
                await kill_and_restart(server, chance)
            load.is_over = True
            await asyncio.wait_for(asyncio.gather(*runners), support.LIMIT)
            await verify_families(load)
            await verify_mailbox(load, mailbox)
            await verify_listeners(load)
    summary = f"{len(load.families)} families, {len(load.listeners)} resets, {load.answers} answers"
    print(f"{KILLS} kills, {summary}")
    assert len(load.families) >= KILLS and load.listeners and load.answers, summary


def test_families_survive_twenty_kills(binary, folder):
    with support.Server(binary, folder / "data") as server:
        asyncio.run(storm(server))


if __name__ == "__main__":
    support.main(sys.modules[__name__])
