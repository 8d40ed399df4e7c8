"""Schedules by the real `cadence` command line and the official Python client."""

import asyncio
import datetime
import json
import sys
import time

from cadence.api.v1 import common_pb2, schedule_pb2, service_domain_pb2 as domain_api, tasklist_pb2
from cadence.client import Client
from google.protobuf import duration_pb2

import support
from support import cadence

TARGET = ["--workflow_type", "order", "--tasklist", "work", "--execution_timeout", "600"]


def schedule(server, *words):
    """What a command that must succeed prints, in domain d."""
    code, out, err = cadence(server, "d", "schedule", *words)
    assert code == 0, (words, code, out, err)
    return out


def refused(server, *words):
    code, out, err = cadence(server, "d", "schedule", *words)
    assert code != 0, (words, out, err)
    return out + err


def described(server, schedule_id):
    return json.loads(schedule(server, "describe", "--schedule_id", schedule_id, "--print_json"))


def runs_of(server, schedule_id):
    return described(server, schedule_id)["info"].get("totalRuns", 0)


def open_domain(server):
    code, out, err = cadence(server, "d", "domain", "register", "--global_domain", "false")
    assert code == 0, (code, out, err)


@support.proves("A-266", "A-272", "A-275", "A-277", "A-280", "A-281", "A-282")
def test_the_command_line_steers_a_schedule(binary, folder):
    with support.Server(binary, folder / "data") as server:
        open_domain(server)
        name = ["--schedule_id", "often"]
        concurrent = ["--overlap_policy", "concurrent"]
        out = schedule(
            server, "create", *name, "--cron_expression", "@every 1s", *TARGET, *concurrent
        )
        assert "ScheduleID: often" in out, out
        again = refused(server, "create", *name, "--cron_expression", "@every 1s", *TARGET)
        assert 'schedule "often" already exists in domain "d"' in again, again
        support.wait_until(lambda: runs_of(server, "often") >= 3, "three runs")
        shown = schedule(server, "list")
        assert "often" in shown and "@every 1s" in shown and "order" in shown, shown
        assert "active" in shown, shown

        schedule(server, "pause", *name, "--reason", "enough")
        told = described(server, "often")
        assert told["state"]["paused"], told
        assert told["state"]["pauseInfo"]["reason"] == "enough", told
        time.sleep(0.5)  # what was on its way has come
        runs = runs_of(server, "often")
        time.sleep(2.5)
        assert runs_of(server, "often") == runs
        support.wait_until(lambda: "paused" in schedule(server, "list"), "a list that knows")

        schedule(server, "update", *name, "--cron_expression", "0 0 1 1 *")
        assert described(server, "often")["spec"]["cronExpression"] == "0 0 1 1 *"
        schedule(server, "unpause", *name)
        assert not described(server, "often")["state"].get("paused"), "it is still paused"

        # A run that fell due just before the pause starts when it ends: one more, at most.
        def counts_agree():
            total = runs_of(server, "often")
            code, out, err = cadence(server, "d", "workflow", "count")
            assert code == 0, (code, out, err)
            assert total <= runs + 1, (total, runs)
            return int(out.split()[-1]) == total + 1  # and the schedule's own

        support.wait_until(counts_agree, "as many runs as the schedule tells of")

        schedule(server, "delete", *name)
        support.wait_until(lambda: "No schedules found." in schedule(server, "list"), "its end")
        missing = refused(server, "pause", *name)
        assert 'schedule "often" not found in domain "d"' in missing, missing
        schedule(server, "delete", *name)


@support.proves("A-278")
def test_the_command_line_fills_the_past(binary, folder):
    with support.Server(binary, folder / "data") as server:
        open_domain(server)
        name = ["--schedule_id", "daily"]
        schedule(server, "create", *name, "--cron_expression", "0 6 * * *", *TARGET)
        past = ["--start_time", "2026-01-01T00:00:00Z", "--end_time", "2026-02-01T00:00:00Z"]
        for _ in range(2):
            schedule(
                server,
                "backfill",
                *name,
                *past,
                "--overlap_policy",
                "concurrent",
                "--backfill_id",
                "january",
            )
        support.wait_until(lambda: runs_of(server, "daily") == 31, "a whole month")
        query = ["--query", "CadenceScheduleBackfillID = 'january'"]
        support.wait_until(
            lambda: cadence(server, "d", "workflow", "count", *query)[1].split()[-1] == "31",
            "lists that have it",
        )
        code, out, err = cadence(
            server, "d", "workflow", "describe", "--workflow_id", "daily-2026-01-31T06:00:00Z"
        )
        assert code == 0 and "order" in out, (out, err)


def test_schedules_go_on_after_the_server_was_killed(binary, folder):
    with support.Server(binary, folder / "data") as server:
        open_domain(server)
        schedule(
            server,
            "create",
            "--schedule_id",
            "often",
            "--cron_expression",
            "@every 1s",
            "--overlap_policy",
            "concurrent",
            *TARGET,
        )
        for _ in range(3):
            runs = runs_of(server, "often")
            support.wait_until(lambda: runs_of(server, "often") > runs, "a run")
            server.kill()
            server.start()
        runs = runs_of(server, "often")
        support.wait_until(lambda: runs_of(server, "often") > runs + 1, "more runs")
        schedule(server, "pause", "--schedule_id", "often")
        time.sleep(0.5)
        runs = runs_of(server, "often")
        query = ["--query", "CadenceScheduleID = 'often'"]
        support.wait_until(
            lambda: cadence(server, "d", "workflow", "count", *query)[1].split()[-1] == str(runs),
            "as many runs as it tells of",
        )


# ---- the Python client ----


def action():
    return schedule_pb2.ScheduleAction(
        start_workflow=schedule_pb2.ScheduleAction.StartWorkflowAction(
            workflow_type=common_pb2.WorkflowType(name="order"),
            task_list=tasklist_pb2.TaskList(name="work"),
            workflow_id_prefix="shop",
            execution_start_to_close_timeout=duration_pb2.Duration(seconds=60),
            task_start_to_close_timeout=duration_pb2.Duration(seconds=10),
        )
    )


async def steer(server):
    async with Client(domain="orders", target=server.grpc) as client:
        await client.domain_stub.RegisterDomain(
            domain_api.RegisterDomainRequest(
                name="orders",
                workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
            )
        )
        await client.create_schedule(
            "python",
            spec=schedule_pb2.ScheduleSpec(cron_expression="@every 1s"),
            action=action(),
            policies=schedule_pb2.SchedulePolicies(
                overlap_policy=schedule_pb2.SCHEDULE_OVERLAP_POLICY_TERMINATE_PREVIOUS
            ),
            state=schedule_pb2.ScheduleState(
                paused=True, pause_info=schedule_pb2.SchedulePauseInfo(reason="not yet")
            ),
        )
        told = await client.describe_schedule("python")
        assert told.state.paused and told.state.pause_info.reason == "not yet", told
        assert told.action == action(), told.action
        await client.unpause_schedule("python")
        for _ in range(100):
            told = await client.describe_schedule("python")
            if told.info.total_runs >= 2:
                break
            await asyncio.sleep(0.2)
        assert told.info.total_runs >= 2, told.info

        def slower(current):
            current.spec.cron_expression = "@every 1h"

        await client.update_schedule("python", slower)
        assert (await client.describe_schedule("python")).spec.cron_expression == "@every 1h"
        end = datetime.datetime.now(datetime.timezone.utc)
        await client.backfill_schedule("python", end - datetime.timedelta(hours=5), end)
        await client.pause_schedule("python", reason="done")
        entries = [entry async for entry in client.list_schedules()]
        assert [entry.schedule_id for entry in entries] == ["python"], entries
        assert entries[0].workflow_type.name == "order", entries
        await client.delete_schedule("python")


@support.proves("A-271", "A-277", "A-283")
def test_the_python_client_steers_a_schedule(binary, folder):
    with support.Server(binary, folder / "data") as server:
        asyncio.run(steer(server))


support.main(sys.modules[__name__])
