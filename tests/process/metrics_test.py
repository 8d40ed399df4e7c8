"""What an operator of Cadence finds at /metrics: the real binary after some work."""

import asyncio
import re
import sys
from datetime import timedelta

from cadence import workflow
from cadence.api.v1 import (
    common_pb2,
    service_domain_pb2 as domain_api,
    service_workflow_pb2 as workflow_api,
)
from cadence.client import Client
from cadence.worker import Registry, Worker
from google.protobuf import duration_pb2

import support

LIST = "metrics-list"
registry = Registry()


@registry.activity()
async def double(number: int) -> int:
    return 2 * number


@registry.workflow()
class Doubles:
    @workflow.run
    async def run(self, number: int) -> int:
        return await double.with_options(
            schedule_to_close_timeout=timedelta(minutes=1)
        ).execute(number)


@registry.workflow()
class Fails:
    @workflow.run
    async def run(self) -> None:
        raise ValueError("no")


def series(server):
    """{(name, labels): value} of the page."""
    page = support.get(server.http, "/metrics")[1]
    found = {}
    for line in page.splitlines():
        parts = re.fullmatch(r"([a-z_A-Z0-9]+)(?:\{(.*)\})? (\S+)", line)
        if parts:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', parts[2] or ""))
            found[parts[1], tuple(sorted(labels.items()))] = float(parts[3])
    return found


def total(found, name, **wanted):
    """The sum of the series of a name that have these labels."""
    values = [
        value
        for (other, labels), value in found.items()
        if other == name and wanted.items() <= dict(labels).items()
    ]
    assert values, (name, wanted)
    return sum(values)


async def work(server):
    async with Client(domain="orders", target=server.grpc) as client:
        await client.domain_stub.RegisterDomain(
            domain_api.RegisterDomainRequest(
                name="orders",
                workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
            )
        )
        options = {"task_list": LIST, "execution_start_to_close_timeout": timedelta(minutes=5)}
        async with Worker(client, LIST, registry):
            runs = [await client.start_workflow("Doubles", n, **options) for n in range(3)]
            runs.append(await client.start_workflow("Fails", **options))
            for run in runs:
                await closed(client, run)
        # Nobody polls this list: one is terminated, one runs out of time.
        for number, seconds in (("ended", 300), ("late", 1)):
            options["execution_start_to_close_timeout"] = timedelta(seconds=seconds)
            options["task_list"] = "nobody"
            run = await client.start_workflow("Doubles", 1, workflow_id=number, **options)
            if number == "ended":
                await client.workflow_stub.TerminateWorkflowExecution(
                    workflow_api.TerminateWorkflowExecutionRequest(
                        domain="orders", workflow_execution=run
                    )
                )
            await closed(client, run)
        try:
            await client.workflow_stub.DescribeWorkflowExecution(
                workflow_api.DescribeWorkflowExecutionRequest(
                    domain="orders",
                    workflow_execution=common_pb2.WorkflowExecution(workflow_id="none"),
                )
            )
        except Exception:  # it does not exist: that is counted
            pass


async def closed(client, run):
    while True:
        told = await client.workflow_stub.DescribeWorkflowExecution(
            workflow_api.DescribeWorkflowExecutionRequest(domain="orders", workflow_execution=run)
        )
        if told.workflow_execution_info.close_status:
            return
        await asyncio.sleep(0.05)


@support.proves("H-034", "H-035", "H-037")
def test_calls_tasks_runs_shards_and_the_store_are_told(binary, folder):
    with support.Server(binary, folder / "data") as server:
        asyncio.run(work(server))
        found = series(server)
        frontend = {"cadence_service": "cadence_frontend", "domain": "orders"}
        history = {"cadence_service": "cadence_history", "domain": "orders"}
        start = "StartWorkflowExecution"
        assert total(found, "cadence_requests", operation=start, **frontend) == 6
        assert total(found, "cadence_latency_count", operation=start, **frontend) == 6
        assert total(found, "cadence_errors", operation=start, **frontend) == 0
        describe = "DescribeWorkflowExecution"
        missing = "cadence_errors_entity_not_exists"
        assert total(found, missing, operation=describe, **frontend) == 1

        assert total(found, "workflow_success", **history) == 3
        assert total(found, "workflow_failed", **history) == 1
        assert total(found, "workflow_terminate", **history) == 1
        assert total(found, "workflow_timeout", **history) == 1
        for never in ("workflow_cancel", "workflow_continued_as_new"):
            assert total(found, never, **history) == 0

        assert total(found, "numshards_gauge") == total(found, "sharditem_created_count") > 0
        activity = "TransferActiveTaskActivity"
        decision = "TransferActiveTaskDecision"
        assert total(found, "task_requests", operation=activity) == 3
        assert total(found, "task_requests_per_domain", operation=activity, **history) == 3
        assert total(found, "task_requests", operation=decision) >= 4 + 3
        assert total(found, "task_latency_count", operation=decision) >= 4 + 3
        assert total(found, "task_attempt_count", operation=decision) >= 4 + 3
        assert total(found, "task_requests", operation="TimerActiveTask") >= 1
        assert total(found, "task_latency_sum", operation="TimerActiveTask") < 60

        run = {"cadence_service": "cadence_history", "operation": "UpdateWorkflowExecution"}
        commits = total(found, "persistence_requests", **run)
        assert commits > 20 and total(found, "persistence_latency_count", **run) == commits
        assert total(found, "persistence_latency_sum", **run) > 0
        assert total(found, "persistence_errors", **run) == 0
        cache = {"cache_type": "mutablestate", "cadence_service": "cadence_history"}
        assert total(found, "cache_requests", **cache) > 0
        assert total(found, "cache_latency_count", **cache) > 0
        assert total(found, "cache_size_gauge", **cache) >= 6
    with support.Server(binary, folder / "data") as server:  # now nothing is in memory
        code, _, error = support.cadence(server, "orders", "workflow", "describe", "-w", "ended")
        assert code == 0, error
        found = series(server)
        assert total(found, "cache_requests", **cache) >= total(found, "cache_miss", **cache) > 0
        read = {"cadence_service": "cadence_history", "operation": "GetWorkflowExecution"}
        assert total(found, "persistence_requests", **read) > 0


if __name__ == "__main__":
    support.main(sys.modules[__name__])
