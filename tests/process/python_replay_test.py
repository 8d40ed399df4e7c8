"""Code that is replayed, with the official Python client: versions, side effects, new workers.

The Python worker keeps nothing between decisions: each one replays the history that the server
gives. A worker that is replaced by one with newer code is what a deployment is."""

import asyncio
import itertools
import sys

from cadence import workflow
from cadence.api.v1 import common_pb2, service_domain_pb2 as domain_api
from cadence.api.v1 import service_workflow_pb2 as workflow_api
from cadence.client import Client
from cadence.worker import Registry, Worker
from google.protobuf import duration_pb2

import support
from python_worker_test import LIST, MINUTE, ask, close_event, kinds, result, say, start

yesterday, today = Registry(), Registry()
numbers = itertools.count(1)


class Waiting:
    """What all of them do: wait until somebody says something."""

    def __init__(self):
        self.heard = []

    async def hear(self, count):
        await workflow.wait_condition(lambda: len(self.heard) >= count)


# ---- code that changes ----


@yesterday.workflow(name="Changing")
class ChangingYesterday(Waiting):
    @workflow.run
    async def run(self) -> str:
        await self.hear(1)
        return "yesterday"

    @workflow.signal(name="say")
    def say(self, word: str) -> None:
        self.heard.append(word)


@today.workflow(name="Changing")
class ChangingToday(Waiting):
    @workflow.run
    async def run(self) -> str:
        before = workflow.get_version("wording", workflow.DEFAULT_VERSION, 2)
        await self.hear(1)
        after = workflow.get_version("wording", workflow.DEFAULT_VERSION, 2)
        return f"{before} {after}"

    @workflow.signal(name="say")
    def say(self, word: str) -> None:
        self.heard.append(word)


# ---- values from outside ----


@today.workflow()
class Dice(Waiting):
    """Throws once, then looks at the number again with each word that it hears."""

    @workflow.run
    async def run(self, count: int) -> str:
        thrown = workflow.side_effect(lambda: next(numbers), int)
        seen = []
        for turn in range(count):
            await self.hear(turn + 1)
            half = workflow.mutable_side_effect(
                "half", lambda turn=turn: turn // 2, int, lambda old, new: old != new
            )
            seen.append(f"{thrown}.{half}")
        return " ".join(seen)

    @workflow.signal(name="say")
    def say(self, word: str) -> None:
        self.heard.append(word)


# ---- all of it ----


@today.workflow()
class Leaf(Waiting):
    @workflow.run
    async def run(self, left: int) -> str:
        await self.hear(1)
        if left > 0:
            workflow.continue_as_new(left - 1)
        return "leaf"

    @workflow.signal(name="say")
    def say(self, word: str) -> None:
        self.heard.append(word)

    @workflow.query(name="words")
    def words(self) -> str:
        return ",".join(self.heard)


@today.workflow()
class Tree:
    """A child that goes on twice; callers ask the parent how far it is."""

    def __init__(self):
        self.state = "sown"

    @workflow.run
    async def run(self) -> str:
        kid = await workflow.start_child_workflow(
            "Leaf", str, 2, workflow_id="leaf", execution_start_to_close_timeout=MINUTE
        )
        self.state = "grown"
        end = await kid
        self.state = "reaped"
        return f"{workflow.get_version('fruit', 1, 1)} {end}"

    @workflow.query(name="state")
    def told(self) -> str:
        return self.state


# ---- the tests ----


def with_client(binary, folder, body):
    async def inside(server):
        async with Client(domain="orders", target=server.grpc) as client:
            await client.domain_stub.RegisterDomain(
                domain_api.RegisterDomainRequest(
                    name="orders",
                    workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
                )
            )
            await asyncio.wait_for(body(client), support.LIMIT)

    with support.Server(binary, folder / "data") as server:
        asyncio.run(inside(server))


async def until_decided(client, execution, count=1):
    """Waits for so many decisions of a run."""
    while (await kinds(client, execution)).count("decision_task_completed") < count:
        await asyncio.sleep(0.02)


async def describe(client, execution):
    described = await client.workflow_stub.DescribeWorkflowExecution(
        workflow_api.DescribeWorkflowExecutionRequest(
            domain="orders", workflow_execution=execution
        )
    )
    return described.workflow_execution_info


def test_a_run_keeps_the_version_of_the_code_that_it_began_with(binary, folder):
    async def body(client):
        async with Worker(client, LIST, yesterday):
            old = await start(client, "Changing")
            await until_decided(client, old)
        async with Worker(client, LIST, today):
            new = await start(client, "Changing")
            await until_decided(client, new)
            attributes = (await describe(client, new)).search_attributes.indexed_fields
            assert b"wording-2" in attributes["CadenceChangeVersion"].data, attributes
            for execution, versions in ((old, '"-1 -1"'), (new, '"2 2"')):
                await say(client, execution, "go")
                assert await result(client, execution) == versions
            assert "marker_recorded" in await kinds(client, new)

    with_client(binary, folder, body)


def test_side_effects_keep_their_values_when_workers_change(binary, folder):
    async def body(client):
        execution = await start(client, "Dice", 4)
        for word in range(4):
            async with Worker(client, LIST, today):
                await until_decided(client, execution, word + 1)
                await say(client, execution, str(word))
                await until_decided(client, execution, word + 2)
        thrown = (await result(client, execution)).strip('"').split()
        first = thrown[0].split(".")[0]
        assert thrown == [f"{first}.{turn // 2}" for turn in range(4)], thrown
        assert (await kinds(client, execution)).count("marker_recorded") == 3

    with_client(binary, folder, body)


def test_a_child_goes_on_while_its_parent_is_asked(binary, folder):
    async def body(client):
        async with Worker(client, LIST, today):
            tree = await start(client, "Tree")
            while await ask(client, tree, "state") != "grown":
                await asyncio.sleep(0.02)
            leaf = common_pb2.WorkflowExecution(workflow_id="leaf")
            leaf = (await describe(client, leaf)).workflow_execution
            runs = []
            while leaf.run_id:
                runs.append(leaf.run_id)
                assert await ask(client, leaf, "words") == ""
                await say(client, leaf, "grow")
                event = await close_event(client, leaf)
                continued = event.workflow_execution_continued_as_new_event_attributes
                leaf.run_id = continued.new_execution_run_id
            assert len(set(runs)) == 3
            assert await result(client, tree) == '"1 leaf"'
            assert await ask(client, tree, "state") == "reaped"
            assert (await kinds(client, tree)).count("child_workflow_execution_started") == 1

    with_client(binary, folder, body)


if __name__ == "__main__":
    support.main(sys.modules[__name__])
