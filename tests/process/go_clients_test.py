"""Go programs against the real binary: the Go client's own tests, Cadence's canary, a worker.

They mostly wait, so all of them run at once, each with a server of its own; a test then waits for
its part. All programs are in build/clients."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

import grpc
from cadence.api.v1 import history_pb2, service_workflow_pb2 as workflow_api
from cadence.api.v1 import service_workflow_pb2_grpc

import support

CLIENTS = pathlib.Path(support.CADENCE).parent
LIMIT = 400  # seconds for a whole program; they take one minute
# As in the file that Cadence has for its tests; and the hint that scales the pollers of workers.
SETTINGS = """
history.EnableConsistentQueryByDomain: [{value: true}]
matching.enableClientAutoConfig: [{value: true}]
"""

GO_TESTS = 39
# Tests of the Go client that cannot pass yet, and why. One that passes has to leave.
NOT_YET = {}

# Tests of the Go client that race with themselves, and how. They have to pass once, alone.
RACES = {
    "TestChildWFWithParentClosePolicyAbandon": "a timer of 5 s in the parent has to be seen some"
    " milliseconds before a timeout of 5 s ends the child",
}
RACE_TRIES = 8

CANARY_WORKFLOWS = {
    "echo",
    "signal",
    "concurrent-execution",
    "query",
    "timeout",
    "localactivity",
    "cancellation",
    "retry",
    "reset",
    "CrossCluster.parent",
    "visibility",
    "searchAttributes",
    "batch",
}
# Workflows of the canary that are left out, and why.
CANARY_EXCLUDES = {
    "archival.history": "there is no archive yet",
    "archival.visibility": "there is no archive yet",
}


# ---- all at once ----


class Part(threading.Thread):
    """One program with its server; what went wrong is raised in who joins it."""

    def __init__(self, run, binary):
        super().__init__(daemon=True)
        self.run_part, self.binary, self.error = run, binary, None

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            try:
                folder = pathlib.Path(folder)
                settings = folder / "settings.yaml"
                settings.write_text(SETTINGS)
                flags = ("--dynamic-config", str(settings))
                with support.Server(self.binary, folder / "data", *flags) as server:
                    self.run_part(server, folder)
                    assert server.stop() == 0, server.text()
            except BaseException as error:  # noqa: BLE001: it is raised again
                self.error = error


parts = {}


def at_once(function):
    """A test that begins together with all others, when the first of them is asked for."""

    def test(binary, folder):
        if not parts:
            wanted = sys.argv[2] if len(sys.argv) > 2 else ""
            for name, other in registered.items():
                if wanted in name:
                    parts[name] = Part(other, binary)
                    parts[name].start()
        part = parts[function.__name__]
        part.join(LIMIT)
        assert not part.is_alive(), "it does not end"
        if part.error is not None:
            raise part.error

    registered[function.__name__] = function
    return test


registered = {}


def register_domain(server, name):
    code, out, err = support.cadence(
        server, name, "domain", "register", "--global_domain", "false", "--retention", "1"
    )
    assert code == 0, (out, err)


def run_program(words, folder, **environment):
    """(exit code, all output) of a program."""
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
    )
    return done.returncode, done.stdout


# ---- the Go client's own tests ----


def run_go_client(server, *flags, **environment):
    """How each test ended, and all output."""
    _, out = run_program(
        [str(CLIENTS / "goclient.test"), "-test.v", *flags],
        CLIENTS / "goclient",
        SERVICE_ADDR=server.grpc,
        SERVICE_NAME="cadence-frontend",
        ENABLE_GRPC_ADAPTER="true",
        **environment,
    )
    ended = re.findall(r"^    --- (\w+): TestIntegrationSuite/(\w+)", out, re.MULTILINE)
    return {name: end for end, name in ended}, out


def wins_race(server, name, **environment):
    for _ in range(RACE_TRIES):
        ends, _ = run_go_client(server, "-testify.m", f"^{name}$", **environment)
        if ends == {name: "PASS"}:
            return True
    return False


def run_go_tests(server, **environment):
    register_domain(server, "integration-test-domain")  # otherwise they wait for caches
    ends, out = run_go_client(server, **environment)
    failed = {name for name, end in ends.items() if end != "PASS"}
    failed -= {name for name in failed & set(RACES) if wins_race(server, name, **environment)}
    for name in failed - set(NOT_YET):
        said = re.search(rf"=== RUN   TestIntegrationSuite/{name}\n.*?(?==== RUN|\Z)", out, re.S)
        print(said[0][-5000:])
    assert failed == set(NOT_YET), f"failed {sorted(failed)}, not {sorted(NOT_YET)}"
    assert len(ends) == GO_TESTS, (len(ends), out[-3000:])


@at_once
def test_the_tests_of_the_go_client_pass_with_sticky_workers(server, folder):
    run_go_tests(server)


@at_once
def test_the_tests_of_the_go_client_pass_without_sticky_workers(server, folder):
    run_go_tests(server, STICKY_OFF="true")


# ---- a worker of ours ----


@at_once
def test_a_go_worker_finds_all_that_it_needs(server, folder):
    code, out = run_program([str(CLIENTS / "go-worker"), server.grpc], folder)
    assert code == 0 and "FAILED" not in out, out
    assert len(re.findall("^ok ", out, re.MULTILINE)) >= 25, out


# ---- Cadence's canary ----


JOB = r'started new job".*"wfID":"([^"]+)"'


class Canary:
    """The canary as a process, with its log."""

    def __init__(self, server, folder):
        excludes = json.dumps([f"workflow.{name}" for name in CANARY_EXCLUDES])
        (folder / "base.yaml").write_text(
            "canary:\n"
            "  domains: [canary]\n"
            "  crossClusterTestMode: test-all\n"
            f"  excludes: {excludes}\n"
            '  cron: {cronSchedule: "@every 1s"}\n'
            f'cadence: {{service: cadence-frontend, address: "{server.grpc}"}}\n'
            "log: {stdout: true, level: info}\n"
        )
        (folder / "here.yaml").write_text("{}\n")
        self.output = folder / "canary.log"
        words = ["--root", str(folder), "--config", ".", "--env", "here", "start", "-m", "all"]
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                [str(CLIENTS / "cadence-canary"), *words], stdout=output, stderr=subprocess.STDOUT
            )

    def text(self):
        return self.output.read_text(errors="replace")

    def find(self, pattern):
        """Waits until its log has something."""

        def look():
            found = re.search(pattern, self.text())
            assert found or self.process.poll() is None, self.text()[-3000:]
            return found

        return support.wait_until(look, f"the canary to say {pattern}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(support.LIMIT)


def close_event(server, workflow_id):
    """Waits for the end of the current run."""
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_workflow_pb2_grpc.WorkflowAPIStub(channel)
        while True:
            page = stub.GetWorkflowExecutionHistory(
                workflow_api.GetWorkflowExecutionHistoryRequest(
                    domain="canary",
                    workflow_execution={"workflow_id": workflow_id},
                    wait_for_new_event=True,
                    history_event_filter_type=history_pb2.EVENT_FILTER_TYPE_CLOSE_EVENT,
                ),
                timeout=LIMIT,
            )
            if page.history.events:
                return page.history.events[0]


def child_ends(server, workflow_id):
    """How each child of a run ended, by the type of the child."""
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_workflow_pb2_grpc.WorkflowAPIStub(channel)
        page = stub.GetWorkflowExecutionHistory(
            workflow_api.GetWorkflowExecutionHistoryRequest(
                domain="canary", workflow_execution={"workflow_id": workflow_id}
            ),
            timeout=support.LIMIT,
        )
    ends = {}
    for event in page.history.events:
        kind = event.WhichOneof("attributes")
        found = re.fullmatch(r"child_workflow_execution_(\w+)_event_attributes", kind)
        if found and found[1] != "started":
            name = getattr(event, kind).workflow_type.name.removeprefix("workflow.")
            ends[name] = found[1]
    return ends


@at_once
def test_the_canary_is_well(server, folder):
    # A child in another domain is allowed between local domains only; the canary finds these there.
    for name in ("canary", "canary-cross-cluster", "canary-archival-domain"):
        register_domain(server, name)
    with Canary(server, folder) as canary:
        sanity = canary.find(JOB)[1]
        canary.find(rf"{JOB}.*\n(.*\n)*.*{JOB}")  # the schedule starts another one
        code, out, err = support.cadence(
            server, "canary", "workflow", "terminate", "--workflow_id", "cadence.canary.cron"
        )
        assert code == 0, (out, err)
        event = close_event(server, sanity)
        ends = child_ends(server, sanity)
        assert ends == {name: "completed" for name in CANARY_WORKFLOWS}, (ends, event)
        assert event.HasField("workflow_execution_completed_event_attributes"), event


if __name__ == "__main__":
    support.main(sys.modules[__name__])
