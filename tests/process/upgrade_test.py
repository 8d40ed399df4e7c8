"""What an older version wrote is opened by this one, and goes on.

tests/process/upgrade/ has data folders that older states wrote, one archive each; they stay as they
are, and a new one is added when what is stored has changed:

    .venv/bin/python tests/process/upgrade_test.py BINARY --make tests/process/upgrade/NAME.tar.xz

The runs in them are open and live for twenty years: closed ones would be gone after their
retention. tools/upgrade does the same with the binary of any commit, by --make and --open."""

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
from cli_support import Cli

FOLDER = pathlib.Path(__file__).resolve().parent / "upgrade"
DOMAIN, LIST = replication_test.DOMAIN, replication_test.LIST
LIFE = 20 * 365 * 86400
SIGNALS = 3
MORE = "more"
LARGE = bytes(range(256)) * 16  # is in the store in another way than small things
SETTING = [
    ("admin", "config", verb, "--name", "history.workflowIDExternalRPS")
    for verb in ("update", "get")
]


def start(side, workflow_id, task_list=LIST, **fields):
    side.workflows.StartWorkflowExecution(
        workflow_api.StartWorkflowExecutionRequest(
            domain=DOMAIN,
            workflow_id=workflow_id,
            workflow_type=common_pb2.WorkflowType(name="scripted"),
            task_list=tasklist_pb2.TaskList(name=task_list),
            input=common_pb2.Payload(data=b"what it began with"),
            execution_start_to_close_timeout=duration_pb2.Duration(seconds=LIFE),
            task_start_to_close_timeout=duration_pb2.Duration(seconds=10),
            request_id=str(uuid.uuid4()),
            **fields,
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


def schedule_activity(activity_id, data=b""):
    long = duration_pb2.Duration(seconds=LIFE)
    return decision_pb2.ScheduleActivityTaskDecisionAttributes(
        activity_id=activity_id,
        activity_type=common_pb2.ActivityType(name="work"),
        task_list=tasklist_pb2.TaskList(name=LIST),
        input=common_pb2.Payload(data=data),
        schedule_to_close_timeout=long,
        schedule_to_start_timeout=long,
        start_to_close_timeout=long,
        heartbeat_timeout=long,
        retry_policy=common_pb2.RetryPolicy(
            initial_interval=duration_pb2.Duration(seconds=1),
            backoff_coefficient=2,
            expiration_interval=long,
        ),
    )


def poll(side, task_list):
    return side.workers.PollForDecisionTask(
        worker_api.PollForDecisionTaskRequest(
            domain=DOMAIN, task_list=tasklist_pb2.TaskList(name=task_list), identity="test"
        ),
        timeout=support.LIMIT,
    )


def fill_more(cli, side):
    """A run with an activity that a worker has, one with an activity that waits with a large input,
    one with a child; settings, a schedule, and something to search for."""
    start(side, "busy", MORE)
    respond(
        side,
        poll(side, MORE),
        schedule_activity_task_decision_attributes=schedule_activity("in-hands"),
    )
    task = poll_activity(side)
    side.workers.RecordActivityTaskHeartbeat(
        worker_api.RecordActivityTaskHeartbeatRequest(
            task_token=task.task_token, details=common_pb2.Payload(data=b"half of it")
        ),
        timeout=support.LIMIT,
    )
    start(side, "waits", MORE)
    respond(
        side,
        poll(side, MORE),
        schedule_activity_task_decision_attributes=schedule_activity("waiting", LARGE),
    )
    start(side, "parent", MORE)
    child = decision_pb2.StartChildWorkflowExecutionDecisionAttributes(
        domain=DOMAIN,
        workflow_id="child",
        workflow_type=common_pb2.WorkflowType(name="scripted"),
        task_list=tasklist_pb2.TaskList(name=MORE),
        execution_start_to_close_timeout=duration_pb2.Duration(seconds=LIFE),
        task_start_to_close_timeout=duration_pb2.Duration(seconds=10),
    )
    respond(side, poll(side, MORE), start_child_workflow_execution_decision_attributes=child)
    support.wait_until(lambda: side.history("child"), "the child")
    side.complete(poll(side, MORE))  # either the parent, which has heard of its child, or that
    found = {"CustomKeywordField": common_pb2.Payload(data=b'"kept"')}
    fields = common_pb2.SearchAttributes(indexed_fields=found)
    start(side, "found", MORE, search_attributes=fields)
    cli(*SETTING[0], "--value", '{"Value":77}')
    when = ("--cron_expression", "0 3 * * *", "--wt", "scripted", "--tl", LIST)
    cli("schedule", "create", "--schedule_id", "nightly", *when)
    cli("schedule", "pause", "--schedule_id", "nightly", "--reason", "later")


def poll_activity(side):
    return side.workers.PollForActivityTask(
        worker_api.PollForActivityTaskRequest(
            domain=DOMAIN, task_list=tasklist_pb2.TaskList(name=LIST), identity="test"
        ),
        timeout=support.LIMIT,
    )


def register(server):
    domain_stub.DomainAPIStub(grpc.insecure_channel(server.grpc)).RegisterDomain(
        domain_api.RegisterDomainRequest(
            name=DOMAIN, workflow_execution_retention_period=duration_pb2.Duration(seconds=86400)
        ),
        timeout=support.LIMIT,
    )


def fill(side):
    """A run that sleeps, one that was signalled, one that nobody has looked at."""
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
    """Stopped in between, so that files have what is in them only then, and killed in the end, so
    that what is only in the log of the store is read by the next one, too."""
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data"
        with support.Server(binary, data) as server:
            register(server)
            fill_more(Cli(binary, server.grpc, DOMAIN), replication_test.Side(server))
            server.stop()
        with support.Server(binary, data) as server:
            fill(replication_test.Side(server))
            server.kill()
        with tarfile.open(archive, "w:xz") as tar:
            tar.add(data, "data")


# ---- opening ----


def finish(side, wanted, task_list=LIST):
    """Does what a worker does until every run has ended; a parent waits for its child."""
    ended = set()
    while ended != wanted:
        task = poll(side, task_list)
        workflow_id = task.workflow_execution.workflow_id
        assert workflow_id in wanted - ended, (workflow_id, ended)
        if workflow_id == "parent" and "child" not in ended:
            side.complete(task)
            continue
        done = decision_pb2.CompleteWorkflowExecutionDecisionAttributes()
        respond(side, task, complete_workflow_execution_decision_attributes=done)
        ended.add(workflow_id)


def check_more(cli, side):
    """What fill_more wrote is all there; the activities end."""
    pending = side.workflows.DescribeWorkflowExecution(
        workflow_api.DescribeWorkflowExecutionRequest(
            domain=DOMAIN, workflow_execution=common_pb2.WorkflowExecution(workflow_id="busy")
        ),
        timeout=support.LIMIT,
    ).pending_activities[0]
    assert pending.heartbeat_details.data == b"half of it", pending
    side.workers.RespondActivityTaskCompletedByID(
        worker_api.RespondActivityTaskCompletedByIDRequest(
            domain=DOMAIN,
            workflow_execution=common_pb2.WorkflowExecution(workflow_id="busy"),
            activity_id="in-hands",
        ),
        timeout=support.LIMIT,
    )
    task = poll_activity(side)
    assert task.activity_id == "waiting", task
    inputs = [  # older ones had none
        event.activity_task_scheduled_event_attributes.input.data
        for event in side.history("waits")
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    assert [task.input.data] == inputs and inputs[0] in (b"", LARGE), task
    side.workers.RespondActivityTaskCompleted(
        worker_api.RespondActivityTaskCompletedRequest(task_token=task.task_token),
        timeout=support.LIMIT,
    )
    query = ("workflow", "list", "--query", "CustomKeywordField = 'kept'")
    support.wait_until(lambda: "found" in cli(*query), "the list")
    assert "77" in cli(*SETTING[1]), "the setting"
    shown = cli("schedule", "describe", "--schedule_id", "nightly")
    assert "0 3 * * *" in shown and "later" in shown, shown
    more = {"busy", "waits", "parent", "child", "found"}
    finish(side, more, MORE)
    return more


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
        wanted = {"sleeps", "signalled", "new"}
        finish(side, wanted)
        if side.history("busy"):
            wanted |= check_more(Cli(binary, server.grpc, DOMAIN), side)
        listed = ["workflow", "listall", "--domain", DOMAIN, "--address", server.grpc]
        support.wait_until(
            lambda: support.run(binary, *listed)[1].count("scripted") == len(wanted),
            "the list of runs",
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
    elif "--open" in sys.argv:
        with tempfile.TemporaryDirectory() as room:
            open_one(sys.argv[1], pathlib.Path(room), pathlib.Path(sys.argv[3]))
    else:
        support.main(sys.modules[__name__])
