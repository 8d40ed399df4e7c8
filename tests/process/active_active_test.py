"""A domain that is active in three clusters of real processes: each workflow has one home.

Official clients and workers are in every cluster; the real `cadence` command line registers the
domain and moves its cities.
"""

import asyncio
import contextlib
import json
import logging
import os
import sys
import time
from datetime import timedelta

from cadence import workflow
from cadence.client import Client
from cadence.worker import Registry, Worker

import grpc
from cadence.api.v1 import (
    common_pb2,
    service_visibility_pb2 as visibility_api,
    service_visibility_pb2_grpc as visibility_stub,
    service_workflow_pb2 as workflow_api,
    service_workflow_pb2_grpc as workflow_stub,
)

import group_test
import support

DOMAIN = "trips"
LIST = "homes"
CITIES = [f"c{number}" for number in range(10)]
WORKFLOWS = int(os.environ.get("CADENZA_HOMES", "100"))  # make soak: 1000
AT_ONCE = 25
LONG = 300  # seconds, for all of them to end on a busy machine
registry = Registry()
logging.getLogger("cadence").setLevel(logging.CRITICAL)


@registry.activity()
async def add_one(number: int) -> int:
    return number + 1


@registry.workflow()
class Trip:
    """Waits to be told that it may end, working now and then."""

    def __init__(self):
        self.stops = 0

    @workflow.signal(name="stop")
    async def stop(self) -> None:
        self.stops += 1

    @workflow.run
    async def run(self) -> int:
        number = 0
        while self.stops < 2:
            await workflow.wait_condition(lambda: self.stops > number)
            number = await add_one.with_options(
                schedule_to_close_timeout=timedelta(minutes=5),
                start_to_close_timeout=timedelta(seconds=5),
                retry_policy={
                    "initial_interval": timedelta(seconds=1),
                    "backoff_coefficient": 1.0,
                    "maximum_attempts": 50,
                },
            ).execute(number)
        return number


# ---- the domain, by the command lines that people have ----


def home(number):
    """Which cluster a city begins in."""
    return f"cluster{number % 3}"


def cadence(server, *words):
    code, out, err = support.cadence(server, DOMAIN, "domain", *words)
    assert code == 0, (words, code, out, err)
    return out


def cadenza(binary, server, *words):
    code, out, err = support.run(binary, *words, "--address", server.grpc)
    assert code == 0, (words, code, out, err)
    return out


def register(clusters, **flags):
    cities = ",".join(f"city.{city}:{home(n)}" for n, city in enumerate(CITIES))
    words = ["register", "--global_domain", "true", "--active_cluster", "cluster0"]
    words += ["--clusters", ",".join(c.name for c in clusters), "--retention", "1"]
    cadence(
        clusters[0], *words, *(["--active_clusters", cities] if flags.get("cities", True) else [])
    )
    group_test.until_same(clusters, DOMAIN)


def homes(cluster):
    """City → (cluster, version), as the cluster shows it."""
    scopes = cluster.describe(DOMAIN).active_clusters.active_clusters_by_cluster_attribute
    return {
        name: (info.active_cluster_name, info.failover_version)
        for name, info in scopes["city"].cluster_attributes.items()
    }


def until_homes(clusters, wanted):
    for cluster in clusters:
        support.wait_until(
            lambda: {c: homes(cluster)[c][0] for c in wanted} == wanted,
            f"{wanted} in {cluster.name}",
        )


# ---- workflows ----


class Side:
    """What is asked of one cluster."""

    def __init__(self, cluster):
        channel = grpc.insecure_channel(cluster.grpc)
        self.workflows = workflow_stub.WorkflowAPIStub(channel)
        self.lists = visibility_stub.VisibilityAPIStub(channel)

    def history(self, workflow_id):
        events, token = [], b""
        while True:
            page = self.workflows.GetWorkflowExecutionHistory(
                workflow_api.GetWorkflowExecutionHistoryRequest(
                    domain=DOMAIN,
                    workflow_execution=common_pb2.WorkflowExecution(workflow_id=workflow_id),
                    next_page_token=token,
                ),
                timeout=support.LIMIT,
            )
            events += page.history.events
            token = page.next_page_token
            if not token:
                return events

    def count(self, query):
        return self.lists.CountWorkflowExecutions(
            visibility_api.CountWorkflowExecutionsRequest(domain=DOMAIN, query=query),
            timeout=support.LIMIT,
        ).count


@contextlib.asynccontextmanager
async def workers_of(clusters):
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for cluster in clusters:
            client = Client(domain=DOMAIN, target=cluster.grpc)
            clients.append(await stack.enter_async_context(client))
        for client in clients:
            await stack.enter_async_context(Worker(client, LIST, registry))
        yield clients


async def all_of(count, act):
    """act(number) for each, some at once."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number):
        async with gate:
            await act(number)

    await asyncio.gather(*(one(number) for number in range(count)))


def city_of(number):
    return CITIES[number % len(CITIES)]


def starter(clients):
    async def start(number):
        """At any cluster: the city decides where it runs."""
        await clients[number % 7 % 3].start_workflow(
            "Trip",
            workflow_id=f"t{number}",
            task_list=LIST,
            execution_start_to_close_timeout=timedelta(minutes=10),
            active_cluster_selection_policy={
                "cluster_attribute": {"scope": "city", "name": city_of(number)}
            },
        )

    return start


def stopper(clients, shift):
    async def stop(number):
        await clients[(number + shift) % 3].signal_workflow(f"t{number}", "", "stop")

    return stop


def versions(events):
    found = []
    for event in events:
        if not found or found[-1] != event.version:
            found.append(event.version)
    return found


def until_counted(side, query, count):
    support.wait_until(lambda: side.count(query) == count, f"{count} by {query}", limit=LONG)


async def aside(function, *arguments):
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


def move_cities(binary, folder, moved, asked, *flags):
    """Some of the cities move, asked of one cluster; only their workflows go along."""
    each = WORKFLOWS // len(CITIES)

    def move(clusters):
        """By the real command line."""
        before = homes(clusters[0])
        wanted = ",".join(f"city.{city}:{cluster}" for city, cluster in moved.items())
        cadence(clusters[asked], "failover", "--active_clusters", wanted, *flags)
        until_homes(clusters, moved)
        after = homes(clusters[0])
        assert {c: after[c] for c in CITIES if c not in moved} == {
            c: before[c] for c in CITIES if c not in moved
        }
        assert all(after[c][1] > before[c][1] for c in moved), (before, after)
        return before, after

    async def work(clusters, sides):
        async with workers_of(clusters) as clients:
            await all_of(WORKFLOWS, starter(clients))
            for side in sides:  # a cluster cannot signal a workflow that it has not heard of
                await aside(until_counted, side, "CloseTime = missing", WORKFLOWS)
            await all_of(WORKFLOWS, stopper(clients, 0))
            here = {f"cluster{n}": 0 for n in range(3)}
            for number, _ in enumerate(CITIES):
                here[home(number)] += each
            for name, count in here.items():
                query = f"CloseTime = missing AND ActiveCluster = '{name}'"
                assert await aside(sides[1].count, query) == count
            before, after = await aside(move, clusters)
            await all_of(WORKFLOWS, stopper(clients, 1))  # most come to the wrong cluster
            begin = time.monotonic()
            for side in sides:
                await aside(until_counted, side, "CloseStatus = 'completed'", WORKFLOWS)
            print(
                f"  {WORKFLOWS} workflows ended {time.monotonic() - begin:.1f} s after the signals"
            )
            await aside(check, sides, before, after)

    def check(sides, before, after):
        for number in range(WORKFLOWS):
            city = city_of(number)
            events = sides[0].history(f"t{number}")
            expected = [before[city][1]] + ([after[city][1]] if city in moved else [])
            assert versions(events) == expected, (number, city, versions(events), expected)
            started = events[0].workflow_execution_started_event_attributes
            assert started.active_cluster_selection_policy.cluster_attribute.name == city
            assert sides[1].history(f"t{number}") == events
            assert sides[2].history(f"t{number}") == events

    def look(clusters):
        shown = json.loads(cadence(clusters[1], "describe", "--print_json"))
        scope = shown["replicationConfiguration"]["activeClusters"]["attributeScopes"]["city"]
        city, target = next(iter(moved.items()))
        assert scope["clusterAttributes"][city]["activeClusterName"] == target, shown
        table = cadenza(binary, clusters[2], "domain", "describe", "--domain", DOMAIN)
        assert f"city.{city}" in table and target in table, table
        one = cadenza(
            binary,
            clusters[0],
            *("domain", "list-failover-history", "--domain", DOMAIN),
            *("--cluster_attribute", f"city.{city}", "--format", "json"),
        )
        assert len(json.loads(one)) == 1, one
        assert ("GRACEFUL" in one.upper()) == bool(flags), one

    with group_test.group(binary, folder, 3) as clusters:
        register(clusters)
        asyncio.run(work(clusters, [Side(cluster) for cluster in clusters]))
        look(clusters)


@support.proves("G-008", "G-010", "G-014", "G-016", "G-028", "G-029", "G-050")
def test_two_cities_move_and_only_their_workflows_go_along(binary, folder):
    # asked of a cluster that neither loses nor gets the first city
    move_cities(binary, folder, {"c0": "cluster1", "c4": "cluster2"}, 2)


def test_two_cities_move_gracefully_and_the_others_do_not_notice(binary, folder):
    moved = {"c0": "cluster1", "c3": "cluster1"}
    move_cities(binary, folder, moved, 1, "--failover_timeout_seconds", "120")


@support.proves("G-057", "G-058")
def test_a_domain_becomes_active_active_and_goes_back_while_workflows_run(binary, folder):
    count = 12

    def convert(clusters):
        cadence(clusters[0], "update", "--active_clusters", "city.c0:cluster1,city.c1:cluster2")
        until_homes(clusters, {"c0": "cluster1", "c1": "cluster2"})

    def go_back(clusters):
        code, _, err = support.run(
            binary,
            *("domain", "update", "--domain", DOMAIN, "--remove_attributes", "city.c0"),
            *("--address", clusters[0].grpc),
        )
        assert code != 0 and "open workflow" in err, err  # they would be active nowhere
        cadenza(
            binary,
            clusters[0],
            *("domain", "update", "--domain", DOMAIN, "--remove_attributes", "all"),
        )
        group_test.until_same(clusters, DOMAIN)
        assert not clusters[2].describe(DOMAIN).HasField("active_clusters")

    async def work(clusters, sides):
        async with workers_of(clusters) as clients:
            for number in range(count // 2):  # of the days before
                await clients[number % 3].start_workflow(
                    "Trip",
                    workflow_id=f"t{number}",
                    task_list=LIST,
                    execution_start_to_close_timeout=timedelta(minutes=10),
                )
            await aside(convert, clusters)
            for number in range(count // 2, count):
                await clients[number % 3].start_workflow(
                    "Trip",
                    workflow_id=f"t{number}",
                    task_list=LIST,
                    execution_start_to_close_timeout=timedelta(minutes=10),
                    active_cluster_selection_policy={
                        "cluster_attribute": {"scope": "city", "name": f"c{number % 2}"}
                    },
                )
            for side in sides:
                await aside(until_counted, side, "CloseTime = missing", count)
            await all_of(count, stopper(clients, 0))
            await aside(go_back, clusters)
            await all_of(count, stopper(clients, 1))
            for side in sides:
                await aside(until_counted, side, "CloseStatus = 'completed'", count)

    def check(sides):
        for number in range(count):
            events = sides[0].history(f"t{number}")
            found = versions(events)
            assert found[-1] % 10 == group_test.INITIAL_VERSIONS[0], found
            began = 0 if number < count // 2 else 1 + number % 2
            assert found[0] % 10 == group_test.INITIAL_VERSIONS[began], found

    with group_test.group(binary, folder, 3) as clusters:
        register(clusters, cities=False)
        sides = [Side(cluster) for cluster in clusters]
        asyncio.run(work(clusters, sides))
        check(sides)


if __name__ == "__main__":
    support.main(sys.modules[__name__])
