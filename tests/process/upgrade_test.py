"""What an older version wrote is opened by this one, and goes on.

tests/process/upgrade/ has data folders that released states wrote, one archive each; they stay as
they are, and a new one is added when the format of what is stored has changed on purpose:

    .venv/bin/python tests/process/upgrade_test.py BINARY --make tests/process/upgrade/NAME.tar.xz

The runs in them are open and live for twenty years: closed ones would be gone after their
retention."""

import pathlib
import sys
import tarfile
import tempfile
import uuid

import grpc
from cadence.api.v1 import (
    common_pb2,
    decision_pb2,
    service_domain_pb2 as domain_api,
    service_domain_pb2_grpc as domain_stub,
    service_worker_pb2 as worker_api,
    service_workflow_pb2 as workflow_api,
    tasklist_pb2,
)
from google.protobuf import duration_pb2

import replication_test
import support

FOLDER = pathlib.Path(__file__).resolve().parent / "upgrade"
DOMAIN, LIST = replication_test.DOMAIN, replication_test.LIST
LIFE = 20 * 365 * 86400
SIGNALS = 3


def start(side, workflow_id):
    side.workflows.StartWorkflowExecution(
        workflow_api.StartWorkflowExecutionRequest(
            domain=DOMAIN,
            workflow_id=workflow_id,
            workflow_type=common_pb2.WorkflowType(name="scripted"),
            task_list=tasklist_pb2.TaskList(name=LIST),
            input=common_pb2.Payload(data=b"what it began with"),
            execution_start_to_close_timeout=duration_pb2.Duration(seconds=LIFE),
            task_start_to_close_timeout=duration_pb2.Duration(seconds=10),
            request_id=str(uuid.uuid4()),
        ),
        timeout=support.LIMIT,
    )


def respond(side, task, **decision):
    side.workers.RespondDecisionTaskCompleted(
        worker_api.RespondDecisionTaskCompletedRequest(
            task_token=task.task_token, decisions=[decision_pb2.Decision(**decision)]
        ),
        timeout=support.LIMIT,
    )


# ---- making ----


def fill(server):
    """A run that sleeps, one that was signalled, one that nobody has looked at."""
    domain_stub.DomainAPIStub(grpc.insecure_channel(server.grpc)).RegisterDomain(
        domain_api.RegisterDomainRequest(
            name=DOMAIN, workflow_execution_retention_period=duration_pb2.Duration(seconds=86400)
        ),
        timeout=support.LIMIT,
    )
    side = replication_test.Side(server)
    start(side, "sleeps")
    timer = decision_pb2.StartTimerDecisionAttributes(
        timer_id="t", start_to_fire_timeout=duration_pb2.Duration(seconds=1)
    )
    respond(side, side.poll(), start_timer_decision_attributes=timer)
    start(side, "signalled")
    side.complete(side.poll())
    for number in range(SIGNALS):
        side.signal("signalled", f"s{number}")
    start(side, "new")


def make(binary, archive):
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data"
        with support.Server(binary, data) as server:
            fill(server)
            assert server.stop() == 0
        with tarfile.open(archive, "w:xz") as tar:
            tar.add(data, "data")


# ---- opening ----


def finish(side):
    """Does what a worker does until every run has ended; their ids."""
    ended = set()
    while len(ended) < 3:
        task = side.poll()
        done = decision_pb2.CompleteWorkflowExecutionDecisionAttributes()
        respond(side, task, complete_workflow_execution_decision_attributes=done)
        ended.add(task.workflow_execution.workflow_id)
    return ended


def open_one(binary, folder, archive):
    folder = folder / f"of-{archive.name}"
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    code, out, err = support.run(binary, "admin", "store", "check", "--data", str(folder / "data"))
    assert code == 0, (archive, out, err)
    with support.Server(binary, folder / "data") as server:
        side = replication_test.Side(server)
        before = replication_test.kinds(side.history("signalled"))
        assert before.count("workflow_execution_signaled") == SIGNALS, before
        first = side.history("new")[0].workflow_execution_started_event_attributes
        assert first.input.data == b"what it began with", first
        support.wait_until(
            lambda: "timer_fired" in replication_test.kinds(side.history("sleeps")), "the timer"
        )
        assert finish(side) == {"sleeps", "signalled", "new"}
        listed = ["workflow", "list", "--domain", DOMAIN, "--address", server.grpc]
        support.wait_until(
            lambda: support.run(binary, *listed)[1].count("scripted") == 3, "the list of runs"
        )
        start(side, "after")
        assert side.poll().workflow_execution.workflow_id == "after"


def test_what_older_versions_wrote_goes_on(binary, folder):
    archives = sorted(FOLDER.glob("*.tar.xz"))
    assert archives
    for archive in archives:
        open_one(binary, folder, archive)


def test_what_this_version_writes_goes_on(binary, folder):
    archive = folder / "this.tar.xz"
    make(binary, archive)
    open_one(binary, folder, archive)


if __name__ == "__main__":
    if "--make" in sys.argv:
        make(sys.argv[1], sys.argv[3])
    else:
        support.main(sys.modules[__name__])
