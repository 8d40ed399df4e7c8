"""The story of user locations, with real processes: users live in regions and move, by an edit of
the file that the primary watches; their workflows move with them, and nobody else's."""

import asyncio
import contextlib
import http.server
import json
import os
import sys
import threading
import time
import urllib.parse
import uuid

from cadence.api.v1 import (
    common_pb2,
    domain_pb2,
    service_workflow_pb2 as workflow_api,
    tasklist_pb2,
)
from google.protobuf import duration_pb2

import group_test
import support
from cli_support import Cli
from replication_test import DOMAIN, LIST, Side, kinds, until_same, workers_of

USERS = 30
MOVING = 10
STEPS = 8  # a second each
SOURCE = "custom.user-location-provider"
SECOND = 1_000_000_000
INCREMENT = 10


def config_of(number, ports, watcher):
    """The group's, with regions, and what is said of users."""
    lines = group_test.group_config(number, ports).splitlines()
    for other in range(2):
        at = lines.index(f"    cluster{other}:")
        lines.insert(at + 1, f"      region: {region(other)}")
    lines += ["  regions:"]
    lines += [f"    {region(i)}: {{initialFailoverVersion: {5 + i}}}" for i in range(2)]
    lines += ["    eu-west: {initialFailoverVersion: 7}"]  # that the domain does not have
    lines += ["entities:", "  types:", "    user-location:", f"      source: {SOURCE}"]
    lines += [f"      {key}: {value}" for key, value in watcher.items()]
    return "\n".join(lines) + "\n"


def region(number):
    return ("us-west", "us-east")[number]


def attributes():
    """Each region is active in the cluster that lies there."""
    infos = {
        region(i): domain_pb2.ActiveClusterInfo(active_cluster_name=f"cluster{i}") for i in range(2)
    }
    scope = domain_pb2.ClusterAttributeScope(cluster_attributes=infos)
    return domain_pb2.ActiveClusters(active_clusters_by_cluster_attribute={"region": scope})


@contextlib.contextmanager
def two_regions(binary, folder, **watcher):
    ports = [(support.free_port(), support.free_port()) for _ in range(2)]
    with contextlib.ExitStack() as stack:
        clusters = []
        for number in range(2):
            cluster = group_test.Cluster(binary, folder, number, ports)
            config = folder / f"{cluster.name}.yaml"
            config.write_text(config_of(number, ports, watcher))
            clusters.append(stack.enter_context(cluster))
        group_test.register(clusters, DOMAIN, active_clusters=attributes())
        group_test.until_same(clusters, DOMAIN)
        yield clusters, [Side(cluster) for cluster in clusters]


def write(path, places):
    """As a tool that maintains such a file does: it renames a new one over it."""
    beside = path.with_suffix(".new")
    beside.write_text("".join(f"{user}: {place}\n" for user, place in places.items()))
    os.replace(beside, path)
    return time.time_ns()


def start(side, workflow_id, user, steps):
    fields = {
        "active-region.lookup-source": common_pb2.Payload(data=SOURCE.encode()),
        "active-region.lookup-key": common_pb2.Payload(data=user.encode()),
    }
    side.workflows.StartWorkflowExecution(
        workflow_api.StartWorkflowExecutionRequest(
            domain=DOMAIN,
            workflow_id=workflow_id,
            workflow_type=common_pb2.WorkflowType(name="Steps"),
            task_list=tasklist_pb2.TaskList(name=LIST),
            input=common_pb2.Payload(data=json.dumps(steps).encode()),
            header=common_pb2.Header(fields=fields),
            execution_start_to_close_timeout=duration_pb2.Duration(seconds=300),
            task_start_to_close_timeout=duration_pb2.Duration(seconds=10),
            request_id=str(uuid.uuid4()),
        ),
        timeout=support.LIMIT,
    )


def writer_of(event):
    """The number of the cluster that wrote it."""
    return group_test.INITIAL_VERSIONS.index(event.version % INCREMENT)


def entity(cli, user):
    code, out, _ = cli.run("admin", "entity", "get", "user-location", user, "--format", "json")
    return json.loads(out) if code == 0 else None


def await_region(clis, user, place):
    def is_there():
        shown = [entity(cli, user) for cli in clis]
        return all(one and one["region"] == place for one in shown)

    support.wait_until(is_there, f"{user} to be in {place}")


def await_active(clis, **running):
    """Lists in every cluster say which open workflow is active where."""
    for cluster, user in running.items():
        query = f"ActiveCluster = '{cluster}' AND CloseTime = missing"
        for cli in clis:
            support.wait_until(
                lambda: user in cli("workflow", "list", "--query", query), f"{user} in {cluster}"
            )
            assert int(cli("workflow", "count", "--query", query)) == 1


def check_ended(sides, name, home, moved_at=None):
    """It ended, is the same everywhere, and was written where its user was; when it moved."""
    support.wait_until(
        lambda: kinds(sides[home].history(name) or [])[-1:] == ["workflow_execution_completed"],
        f"{name} to end",
        limit=120,
    )
    events = until_same(sides, name)
    writers = [writer_of(event) for event in events]
    versions = [event.version for event in events]
    assert versions == sorted(versions), versions
    if moved_at is None:
        assert set(writers) == {home}, writers
        return None
    first = writers.index(home)
    assert first > 0 and set(writers[first:]) == {home}, writers
    assert set(writers[:first]) == {1 - home} and versions[first] > versions[first - 1]
    return (events[first].event_time.ToNanoseconds() - moved_at) / SECOND


@support.proves("G-041", "G-061")
def test_users_that_move_take_their_workflows_along_and_nobody_elses(binary, folder):
    path = folder / "users.yaml"
    places = {f"user-{i}": region(i % 2) for i in range(USERS)}
    movers = [f"user-{i}" for i in range(0, 2 * MOVING, 2)]  # they live in us-west
    write(path, places)

    def begin(sides, clis):
        await_region(clis, f"user-{USERS - 1}", places[f"user-{USERS - 1}"])
        for number, user in enumerate(places):
            start(sides[number % 3 % 2], user, user, STEPS)  # asked of either
        time.sleep(STEPS / 4)
        for user in movers:
            places[user] = "us-east"
        return write(path, places)

    def check(sides, moved_at):
        took = []
        for user, place in places.items():
            home = 0 if place == "us-west" else 1
            took.append(check_ended(sides, user, home, moved_at if user in movers else None))
        took = [one for one in took if one is not None]
        assert len(took) == MOVING
        # A workflow that sleeps has its next event when it wakes: up to a second later.
        print(
            f"    first event in the new region {min(took):.2f} to {max(took):.2f} s after the edit"
        )

    async def work(clusters, sides, clis):
        async with workers_of(clusters):
            loop = asyncio.get_running_loop()
            moved_at = await loop.run_in_executor(None, begin, sides, clis)
            await loop.run_in_executor(None, check, sides, moved_at)

    watcher = {"watcher": "file", "file": path, "interval": "100ms"}
    with two_regions(binary, folder, **watcher) as (clusters, sides):
        clis = [Cli(binary, cluster.grpc, DOMAIN) for cluster in clusters]
        asyncio.run(work(clusters, sides, clis))


def test_a_pending_decision_is_given_out_in_the_new_region(binary, folder):
    path = folder / "users.yaml"
    write(path, {"ann": "us-west", "bob": "us-west"})
    watcher = {"watcher": "file", "file": path, "interval": "100ms"}
    with two_regions(binary, folder, **watcher) as (clusters, sides):
        clis = [Cli(binary, cluster.grpc, DOMAIN) for cluster in clusters]
        await_region(clis, "ann", "us-west")
        for user in ("ann", "bob"):
            start(sides[1], user, user, 1)
            support.wait_until(lambda: sides[1].history(user), f"{user} in the other cluster")
        moved_at = write(path, {"ann": "us-east", "bob": "us-west"})
        task = sides[1].poll()
        took = (time.time_ns() - moved_at) / SECOND
        assert task.workflow_execution.workflow_id == "ann", task
        print(f"    decision in the new region {took:.2f} s after the edit")
        await_active(clis, cluster0="bob", cluster1="ann")
        sides[1].complete(task)
        assert sides[0].poll().workflow_execution.workflow_id == "bob"


def test_operators_see_and_set_entities_in_any_cluster(binary, folder):
    path = folder / "users.yaml"
    write(path, {"ann": "us-west"})
    watcher = {"watcher": "file", "file": path, "interval": "100ms"}
    with two_regions(binary, folder, **watcher) as (clusters, _):
        clis = [Cli(binary, cluster.grpc, DOMAIN) for cluster in clusters]
        await_region(clis, "ann", "us-west")
        words = ["admin", "entity"]
        code, _, err = clis[1].run(*words, "set", "user-location", "bob", "us-east")
        assert code == 0, err  # the primary is asked
        assert "user-location" in err and str(path) in err and "overwrites" in err, err
        assert entity(clis[1], "bob")["region"] == "us-east"  # and it is seen here at once
        await_region(clis, "bob", "us-east")
        shown = json.loads(clis[0](*words, "list", "--format", "json"))
        keys = [(row["type"], row["key"]) for row in shown]
        assert keys == [
            ("domain", f"{DOMAIN}.us-east"),
            ("domain", f"{DOMAIN}.us-west"),
            ("user-location", "ann"),
            ("user-location", "bob"),
        ], keys
        homes = entity(clis[0], "bob")["homes"]
        assert [(h["domain"], h["cluster"]) for h in homes] == [(DOMAIN, "cluster1")], homes
        clis[1](*words, "delete", "user-location", "bob")
        assert entity(clis[1], "bob")["isDeleted"]
        code, _, err = clis[0].run(*words, "set", "user-location", "bob", "mars")
        assert code == 1 and "us-west, us-east" in err, err
        code, _, err = clis[1].run(*words, "set", "planet", "mars", "us-east")
        assert code == 1 and "'planet' is not one of entities.types" in err, err
        assert "eu-west" not in clis[0].run("admin", "doctor")[1]
        clis[0](*words, "set", "user-location", "zoe", "eu-west")
        code, out, _ = clis[0].run("admin", "doctor")
        assert code == 1 and f"region eu-west, which domain {DOMAIN} does not have" in out, out
        path.write_text("ann: mars\n")  # a source that fails changes nothing, and is seen
        support.wait_until(
            lambda: "mars" in clis[0](*words, "watchers"), "the watcher to say what is wrong"
        )
        assert entity(clis[0], "ann")["region"] == "us-west"
        assert "runs in cluster0" in clis[1](*words, "watchers")
        metrics = support.get(clusters[0].http, "/metrics")
        assert 'cadence_entity_source_failures{type="user-location"}' in str(metrics)


class Source(http.server.BaseHTTPRequestHandler):
    """An HTTP source: the protocol of docs/entities.md, as somebody would write it."""

    state = {"version": 0, "places": {}, "changes": {}}
    changed = threading.Condition()

    @classmethod
    def say(cls, **changes):
        with cls.changed:
            cls.state["version"] += 1
            cls.state["places"].update(changes)
            cls.state["changes"] = changes
            cls.changed.notify_all()

    def do_GET(self):
        query = urllib.parse.parse_qs(
            urllib.parse.urlparse(self.path).query, keep_blank_values=True
        )
        version = query["version"][0]
        with self.changed:
            self.changed.wait_for(
                lambda: str(self.state["version"]) != version, timeout=int(query["wait"][0])
            )
            now = str(self.state["version"])
            if now == version:
                self.send_response(304)
                self.end_headers()
                return
            answer = {"version": now, "entities": self.state["places"]}
            if version and int(now) == int(version) + 1:
                answer = {"version": now, "changes": self.state["changes"]}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_an_http_source_is_followed_as_it_says_something(binary, folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Source)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Source.say(ann="us-west")
    watcher = {
        "watcher": "http",
        "url": f"http://127.0.0.1:{server.server_port}/where",
        "wait": "2s",
    }
    with two_regions(binary, folder, **watcher) as (clusters, _):
        clis = [Cli(binary, cluster.grpc, DOMAIN) for cluster in clusters]
        await_region(clis, "ann", "us-west")
        for place in ("us-east", "us-west", "us-east"):
            Source.say(ann=place)
            await_region(clis, "ann", place)
        server.shutdown()
        server.server_close()
        support.wait_until(
            lambda: "failing" in clis[0]("admin", "entity", "watchers"), "the watcher to fail"
        )
        assert entity(clis[0], "ann")["region"] == "us-east"


if __name__ == "__main__":
    sys.exit(support.main(sys.modules[__name__]))
