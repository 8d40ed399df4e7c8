"""Workflows of the official Python client: its worker, unchanged, against the real binary."""

import asyncio
import sys
from datetime import timedelta

from cadence import activity, workflow
from cadence.api.v1 import common_pb2, history_pb2, service_domain_pb2 as domain_api
from cadence.api.v1 import query_pb2, service_workflow_pb2 as workflow_api, workflow_pb2
from cadence.client import Client
from cadence.error import QueryFailedError
from cadence.worker import Registry, Worker
from google.protobuf import duration_pb2

import support

LIST = "python-list"
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
registry = Registry()


# ---- activities ----


@registry.activity()
async def double(number: int) -> int:
    return 2 * number


attempts = {}


@registry.activity()
async def fail_twice(key: str) -> int:
    """Fails until its third attempt."""
    attempts[key] = attempts.get(key, 0) + 1
    if attempts[key] < 3:
        raise ValueError(f"attempt {attempts[key]}")
    return attempts[key]


@registry.activity()
async def fail_always() -> None:
    raise ValueError("never works")


@registry.activity()
def beat_and_die(key: str) -> int:
    """The first attempt sends heartbeats and falls silent; the next one says what it found."""
    if activity.info().attempt > 0:
        return activity.heartbeat_details(int)[0]
    activity.heartbeat(41)
    activity.wait_for_cancelled(timedelta(seconds=20))
    return -1


# ---- workflows ----


@registry.workflow()
class Chain:
    @workflow.run
    async def run(self, number: int) -> int:
        for _ in range(3):
            number = await double.with_options(schedule_to_close_timeout=MINUTE).execute(number)
        return number


@registry.workflow()
class Parallel:
    @workflow.run
    async def run(self, count: int) -> int:
        calls = [
            double.with_options(schedule_to_close_timeout=MINUTE).execute(i) for i in range(count)
        ]
        return sum(await asyncio.gather(*calls))


@registry.workflow()
class Sleeper:
    @workflow.run
    async def run(self, count: int) -> int:
        for _ in range(count):
            await workflow.sleep(SECOND)
        return count


@registry.workflow()
class Listener:
    def __init__(self):
        self.heard = []

    @workflow.run
    async def run(self, count: int) -> str:
        await workflow.wait_condition(lambda: len(self.heard) >= count)
        return ",".join(self.heard)

    @workflow.signal(name="say")
    def say(self, word: str) -> None:
        self.heard.append(word)

    @workflow.query(name="words")
    def words(self) -> str:
        return ",".join(self.heard)

    @workflow.query(name="word")
    def word(self, number: int) -> str:
        return self.heard[number]


@registry.workflow()
class Retrier:
    @workflow.run
    async def run(self, key: str) -> int:
        return await fail_twice.with_options(
            schedule_to_close_timeout=MINUTE,
            retry_policy={
                "initial_interval": SECOND,
                "backoff_coefficient": 1.0,
                "maximum_attempts": 5,
            },
        ).execute(key)


@registry.workflow()
class Failer:
    @workflow.run
    async def run(self) -> str:
        await fail_always.with_options(schedule_to_close_timeout=MINUTE).execute()
        return "not reached"


@registry.workflow()
class Beater:
    @workflow.run
    async def run(self, key: str) -> int:
        return await beat_and_die.with_options(
            schedule_to_close_timeout=MINUTE,
            heartbeat_timeout=2 * SECOND,
            retry_policy={
                "initial_interval": SECOND,
                "backoff_coefficient": 1.0,
                "maximum_attempts": 3,
            },
        ).execute(key)


@registry.workflow()
class Countdown:
    @workflow.run
    async def run(self, left: int) -> str:
        if left > 0:
            workflow.continue_as_new(left - 1)
        return "done"


@registry.workflow()
class Parent:
    """Its children double a number each, side by side."""

    @workflow.run
    async def run(self, count: int) -> int:
        kids = [
            await workflow.start_child_workflow(
                "Chain", int, number, execution_start_to_close_timeout=MINUTE
            )
            for number in range(count)
        ]
        return sum([await kid for kid in kids])


@registry.workflow()
class Caller:
    """Signals a child that listens, and a workflow that is not its child."""

    @workflow.run
    async def run(self, other: str) -> str:
        kid = await workflow.start_child_workflow(
            "Listener", str, 2, execution_start_to_close_timeout=MINUTE
        )
        await kid.signal("say", "one")
        await kid.signal("say", "two")
        await workflow.signal_external_workflow(other, "say", "hello")
        return await kid


@registry.workflow()
class Canceller:
    @workflow.run
    async def run(self) -> str:
        kid = await workflow.start_child_workflow(
            "Sleeper", int, 60, execution_start_to_close_timeout=MINUTE
        )
        kid.cancel()
        try:
            await kid
        except BaseException as error:  # noqa: BLE001: whatever the client makes of it
            return type(error).__name__
        return "not cancelled"


@registry.workflow()
class Heir:
    """Ends while its child sleeps, which has this policy."""

    @workflow.run
    async def run(self, kid: str, policy: str) -> str:
        await workflow.start_child_workflow(
            "Sleeper",
            int,
            60,
            workflow_id=kid,
            parent_close_policy=policy,
            execution_start_to_close_timeout=MINUTE,
        )
        return "gone"


@registry.workflow()
class Grandparent:
    @workflow.run
    async def run(self) -> str:
        return await workflow.execute_child_workflow(
            "Countdown", str, 2, execution_start_to_close_timeout=MINUTE
        )


# ---- the tests ----


def with_worker(binary, folder, body, wants_server=False):
    """Runs body(client), or body(client, server), with a server, a domain and a worker."""

    async def inside(server):
        async with Client(domain="orders", target=server.grpc) as client:
            await client.domain_stub.RegisterDomain(
                domain_api.RegisterDomainRequest(
                    name="orders",
                    workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
                )
            )
            async with Worker(client, LIST, registry):
                running = body(client, server) if wants_server else body(client)
                await asyncio.wait_for(running, support.LIMIT)

    with support.Server(binary, folder / "data") as server:
        asyncio.run(inside(server))


async def start(client, name, *arguments, **options):
    return await client.start_workflow(
        name, *arguments, task_list=LIST, execution_start_to_close_timeout=MINUTE, **options
    )


async def close_event(client, execution):
    """Waits for the run's last event."""
    while True:
        page = await client.workflow_stub.GetWorkflowExecutionHistory(
            workflow_api.GetWorkflowExecutionHistoryRequest(
                domain="orders",
                workflow_execution=execution,
                wait_for_new_event=True,
                history_event_filter_type=history_pb2.EVENT_FILTER_TYPE_CLOSE_EVENT,
                skip_archival=True,
            )
        )
        if page.history.events:
            assert len(page.history.events) == 1 and not page.next_page_token
            return page.history.events[0]


async def result(client, execution):
    event = await close_event(client, execution)
    kind = event.WhichOneof("attributes")
    assert kind == "workflow_execution_completed_event_attributes", event
    return event.workflow_execution_completed_event_attributes.result.data.decode().strip()


async def kinds(client, execution):
    """The kinds of all events of a run, in order."""
    found, token = [], b""
    while True:
        page = await client.workflow_stub.GetWorkflowExecutionHistory(
            workflow_api.GetWorkflowExecutionHistoryRequest(
                domain="orders",
                workflow_execution=execution,
                page_size=5,
                next_page_token=token,
            )
        )
        for event in page.history.events:
            assert event.event_id == len(found) + 1, event
            found.append(event.WhichOneof("attributes").removesuffix("_event_attributes"))
        token = page.next_page_token
        if not token:
            return found


def test_activities_run_one_after_another(binary, folder):
    async def body(client):
        execution = await start(client, "Chain", 5)
        assert await result(client, execution) == "40"
        assert (await kinds(client, execution)).count("activity_task_completed") == 3

    with_worker(binary, folder, body)


def test_twenty_activities_run_side_by_side(binary, folder):
    async def body(client):
        execution = await start(client, "Parallel", 20)
        assert await result(client, execution) == str(2 * sum(range(20)))

    with_worker(binary, folder, body)


@support.proves("A-124")
def test_timers_fire_one_after_another(binary, folder):
    async def body(client):
        execution = await start(client, "Sleeper", 3)
        assert await result(client, execution) == "3"
        assert (await kinds(client, execution)).count("timer_fired") == 3

    with_worker(binary, folder, body)


@support.proves("A-133")
def test_signals_arrive_in_their_order(binary, folder):
    async def body(client):
        execution = await start(client, "Listener", 10)
        for number in range(10):
            await client.signal_workflow(
                execution.workflow_id, execution.run_id, "say", str(number)
            )
        assert await result(client, execution) == '"0,1,2,3,4,5,6,7,8,9"'

    with_worker(binary, folder, body)


def test_signal_with_start_starts_and_then_signals(binary, folder):
    async def body(client):
        options = {"task_list": LIST, "execution_start_to_close_timeout": MINUTE}
        runs = [
            await client.signal_with_start_workflow(
                "Listener", "say", [word], 2, workflow_id="both", **options
            )
            for word in ("one", "two")
        ]
        assert runs[0].run_id == runs[1].run_id
        assert await result(client, runs[0]) == '"one,two"'

    with_worker(binary, folder, body)


def test_an_activity_is_tried_until_it_works(binary, folder):
    async def body(client):
        execution = await start(client, "Retrier", execution_key(folder))
        assert await result(client, execution) == "3"
        found = await kinds(client, execution)
        assert found.count("activity_task_started") == 1 and "activity_task_failed" not in found

    with_worker(binary, folder, body)


def execution_key(folder):
    return folder.name


def test_a_failed_activity_fails_its_workflow(binary, folder):
    async def body(client):
        event = await close_event(client, await start(client, "Failer"))
        failure = event.workflow_execution_failed_event_attributes.failure
        assert failure.reason, event

    with_worker(binary, folder, body)


@support.proves("A-112")
def test_heartbeat_details_reach_the_next_attempt(binary, folder):
    async def body(client):
        found = await result(client, await start(client, "Beater", "k"))
        assert found == "41", found

    with_worker(binary, folder, body)


def test_cancellation_ends_a_sleeping_workflow(binary, folder):
    async def body(client):
        execution = await start(client, "Sleeper", 60)
        await client.cancel_workflow(execution.workflow_id, execution.run_id)
        event = await close_event(client, execution)
        assert event.WhichOneof("attributes").startswith("workflow_execution_canceled"), event

    with_worker(binary, folder, body)


def test_a_workflow_continues_as_new_until_it_is_done(binary, folder):
    async def body(client):
        execution = await start(client, "Countdown", 4, workflow_id="count")
        run_ids = [execution.run_id]
        while True:
            event = await close_event(client, execution)
            new = event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
            if not new:
                break
            run_ids.append(new)
            execution = common_pb2.WorkflowExecution(workflow_id="count", run_id=new)
        assert len(set(run_ids)) == 5
        assert await result(client, execution) == '"done"'

    with_worker(binary, folder, body)


def test_children_run_side_by_side(binary, folder):
    async def body(client):
        execution = await start(client, "Parent", 10)
        assert await result(client, execution) == str(8 * sum(range(10)))
        found = await kinds(client, execution)
        assert found.count("child_workflow_execution_started") == 10, found
        assert found.count("child_workflow_execution_completed") == 10, found

    with_worker(binary, folder, body)


async def say(client, execution, *words):
    for word in words:
        await client.signal_workflow(execution.workflow_id, execution.run_id, "say", word)


async def ask(client, execution, *question, **options):
    return await client.query_workflow(
        execution.workflow_id, execution.run_id, *question, **options
    )


@support.proves("A-211")
def test_an_open_workflow_answers_queries(binary, folder):
    async def body(client):
        execution = await start(client, "Listener", 3)
        assert await ask(client, execution, "words") == ""  # waits for the first decision
        await say(client, execution, "one", "two")
        while await ask(client, execution, "words") != "one,two":
            await asyncio.sleep(0.05)
        assert await ask(client, execution, "word", 1) == "two"
        answers = await asyncio.gather(*(ask(client, execution, "words") for _ in range(20)))
        assert answers == ["one,two"] * 20
        for question in (("unknown",), ("word", 7)):
            try:
                await ask(client, execution, *question)
                raise AssertionError("the query was answered")
            except QueryFailedError:
                pass
        await say(client, execution, "three")
        assert await result(client, execution) == '"one,two,three"'
        assert not any("query" in kind for kind in await kinds(client, execution))

    with_worker(binary, folder, body)


def test_a_parent_signals_its_child_and_a_stranger(binary, folder):
    async def body(client):
        stranger = await start(client, "Listener", 1, workflow_id="stranger")
        execution = await start(client, "Caller", "stranger")
        assert await result(client, execution) == '"one,two"'
        assert await result(client, stranger) == '"hello"'

    with_worker(binary, folder, body)


@support.proves("A-214")
def test_a_closed_workflow_answers_queries_unless_they_reject_it(binary, folder):
    async def body(client):
        execution = await start(client, "Listener", 1)
        await say(client, execution, "bye")
        await result(client, execution)
        assert await ask(client, execution, "words") == "bye"
        cleanly = query_pb2.QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY
        assert await ask(client, execution, "words", query_reject_condition=cleanly) == "bye"
        try:
            open_only = query_pb2.QUERY_REJECT_CONDITION_NOT_OPEN
            await ask(client, execution, "words", query_reject_condition=open_only)
            raise AssertionError("the query was not rejected")
        except QueryFailedError as error:
            assert "rejected" in str(error), error

    with_worker(binary, folder, body)


def test_a_parent_cancels_its_child(binary, folder):
    async def body(client):
        execution = await start(client, "Canceller")
        assert await result(client, execution) != '"not cancelled"'
        found = await kinds(client, execution)
        assert "child_workflow_execution_canceled" in found, found

    with_worker(binary, folder, body)


def test_children_part_from_their_parent_as_they_should(binary, folder):
    async def body(client):
        for policy, end in [
            ("PARENT_CLOSE_POLICY_TERMINATE", "workflow_execution_terminated"),
            ("PARENT_CLOSE_POLICY_REQUEST_CANCEL", "workflow_execution_canceled"),
        ]:
            execution = await start(client, "Heir", end, policy)
            assert await result(client, execution) == '"gone"'
            kid = common_pb2.WorkflowExecution(workflow_id=end)
            event = await close_event(client, kid)
            assert event.WhichOneof("attributes").startswith(end), event

    with_worker(binary, folder, body)


def test_a_parent_gets_the_result_of_a_child_that_went_on(binary, folder):
    async def body(client):
        assert await result(client, await start(client, "Grandparent")) == '"done"'

    with_worker(binary, folder, body)


def test_the_cadence_command_line_queries(binary, folder):
    async def body(client, server):
        execution = await start(client, "Listener", 2)
        await say(client, execution, "hello")

        def query(*options):
            names = ("--workflow_id", execution.workflow_id, "--run_id", execution.run_id)
            return support.cadence(
                server, "orders", "workflow", "query", *names, "--query_type", "words", *options
            )

        while True:
            code, out, err = await asyncio.to_thread(query)
            assert code == 0, (code, out, err)
            if "hello" in out:
                break
        await say(client, execution, "bye")
        await result(client, execution)
        code, out, err = await asyncio.to_thread(query)
        assert code == 0 and "hello,bye" in out, (code, out, err)
        code, out, err = await asyncio.to_thread(query, "--query_reject_condition", "not_open")
        assert "rejected" in out + err, (code, out, err)

    with_worker(binary, folder, body, wants_server=True)


async def next_run(client, execution):
    """Waits until the run is followed by another one: why, and the other one."""
    event = await close_event(client, execution)
    continued = event.workflow_execution_continued_as_new_event_attributes
    assert continued.new_execution_run_id, event
    return continued, common_pb2.WorkflowExecution(
        workflow_id=execution.workflow_id, run_id=continued.new_execution_run_id
    )


@support.proves("A-184", "A-187")
def test_a_cron_workflow_runs_until_it_is_terminated(binary, folder):
    async def body(client):
        execution = await start(client, "Chain", 5, workflow_id="cron", cron_schedule="@every 1s")
        for _ in range(3):
            continued, execution = await next_run(client, execution)
            assert continued.initiator == workflow_pb2.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE
            assert continued.last_completion_result.data.decode().strip() == "40", continued
        await client.workflow_stub.TerminateWorkflowExecution(
            workflow_api.TerminateWorkflowExecutionRequest(
                domain="orders",
                workflow_execution=common_pb2.WorkflowExecution(workflow_id="cron"),
            )
        )

    with_worker(binary, folder, body)


@support.proves("A-190", "A-192")
def test_a_workflow_that_fails_is_tried_again(binary, folder):
    async def body(client):
        policy = {"initial_interval": SECOND, "backoff_coefficient": 1, "maximum_attempts": 2}
        execution = await start(client, "Failer", workflow_id="again", retry_policy=policy)
        continued, execution = await next_run(client, execution)
        assert continued.initiator == workflow_pb2.CONTINUE_AS_NEW_INITIATOR_RETRY_POLICY
        assert continued.failure.reason, continued
        event = await close_event(client, execution)
        assert event.WhichOneof("attributes").startswith("workflow_execution_failed"), event

    with_worker(binary, folder, body)


if __name__ == "__main__":
    support.main(sys.modules[__name__])
