"""The real `cadence` command line against the real binary; it is in build/clients."""

import json
import re
import sys
import threading

import grpc
from cadence.api.v1 import decision_pb2, service_worker_pb2 as worker_api
from cadence.api.v1 import service_worker_pb2_grpc, tasklist_pb2

import support
from support import cadence

WORKFLOW = ["--tasklist", "list", "--workflow_type", "order", "--execution_timeout", "600"]
PLACES = [("rpc-caller", "test"), ("rpc-service", "cadence-frontend"), ("rpc-encoding", "proto")]


def run_cadence(server, *words):
    """What a command that must succeed prints, in domain d."""
    code, out, err = cadence(server, "d", *words)
    assert code == 0, (words, code, out, err)
    return out


def refused(server, *words):
    """What a command that must fail says, in domain d."""
    code, out, err = cadence(server, "d", *words)
    assert code != 0, (words, out, err)
    return out + err


def open_domain(server):
    run_cadence(server, "domain", "register", "--global_domain", "false")


def start(server, workflow_id, *flags):
    """The id of the new run."""
    out = run_cadence(server, "workflow", "start", "--workflow_id", workflow_id, *WORKFLOW, *flags)
    return re.search(rf"Started Workflow Id: {workflow_id}, run Id: ([0-9a-f-]{{36}})", out)[1]


def show(server, workflow_id):
    """The types of the events, in order."""
    out = run_cadence(server, "workflow", "show", "--workflow_id", workflow_id)
    lines = re.findall(r"^ *(\d+)  (\w+)", out, re.MULTILINE)
    assert [int(number) for number, _ in lines] == list(range(1, len(lines) + 1)), out
    return [kind for _, kind in lines]


def describe(server, workflow_id):
    return json.loads(run_cadence(server, "workflow", "describe", "--workflow_id", workflow_id))


def test_a_local_domain_is_registered_and_described(binary, folder):
    with support.Server(binary, folder / "data") as server:
        code, out, err = cadence(
            server,
            "d",
            "domain",
            "register",
            "--global_domain",
            "false",
            "--retention",
            "5",
            "--description",
            "first",
            "--owner_email",
            "a@b",
        )
        assert code == 0 and "successfully registered" in out + err, (code, out, err)
        code, out, err = cadence(server, "d", "domain", "describe")
        assert code == 0, (code, out, err)
        for words in (
            "Name: d",
            "Description: first",
            "OwnerEmail: a@b",
            "Status: REGISTERED",
            "cluster0",
        ):
            assert words in out, (words, out)


def test_registering_with_the_cli_s_defaults_works(binary, folder):
    with support.Server(binary, folder / "data") as server:
        code, out, err = cadence(server, "samples-domain", "domain", "register")
        assert code == 0, (code, out, err)
        code, out, err = cadence(server, "samples-domain", "domain", "describe", "--print_json")
        assert code == 0 and '"samples-domain"' in out, (code, out, err)


def test_a_domain_is_updated_and_listed(binary, folder):
    with support.Server(binary, folder / "data") as server:
        assert cadence(server, "d", "domain", "register", "--global_domain", "false")[0] == 0
        code, out, err = cadence(
            server, "d", "domain", "update", "--description", "second", "--retention", "7"
        )
        assert code == 0, (code, out, err)
        code, out, err = cadence(server, "d", "domain", "describe")
        assert "Description: second" in out and "RetentionInDays: 7" in out, (out, err)
        code, out, err = cadence(server, "d", "admin", "domain", "list")
        assert code == 0 and "d" in out.split(), (code, out, err)


def test_mistakes_are_told_in_the_words_that_users_know(binary, folder):
    with support.Server(binary, folder / "data") as server:
        assert cadence(server, "d", "domain", "register", "--global_domain", "false")[0] == 0
        code, out, err = cadence(server, "d", "domain", "register", "--global_domain", "false")
        assert code != 0 and "already registered" in out + err, (code, out, err)
        code, out, err = cadence(server, "nobody", "domain", "describe")
        assert code != 0 and "not exist" in out + err, (code, out, err)


def workflow(server, *words):
    code, out, err = cadence(server, "d", "workflow", *words, "--workflow_id", "wf")
    assert code == 0, (words, code, out, err)
    return out


@support.proves("A-048", "A-196")
def test_a_run_is_started_signalled_restarted_and_terminated(binary, folder):
    with support.Server(binary, folder / "data") as server:
        assert cadence(server, "d", "domain", "register", "--global_domain", "false")[0] == 0
        kind = ("--tasklist", "work", "--workflow_type", "order", "--execution_timeout", "60")
        first = workflow(server, "start", *kind, "--input", '"x"').split()[-1]
        workflow(server, "signal", "--name", "go", "--input", "1")
        shown = workflow(server, "show")
        assert "WorkflowExecutionSignaled" in shown, shown
        second = workflow(server, "restart").split()[-1]
        assert first != second and second in workflow(server, "describe")
        shown = workflow(server, "show")
        assert "WorkflowExecutionSignaled" not in shown and "order" in shown, shown
        assert "Terminated" in workflow(server, "show", "--run_id", first)
        workflow(server, "terminate", "--reason", "enough")
        assert "Terminated" in workflow(server, "show"), "it is still open"
        code, out, err = cadence(server, "d", "workflow", "restart", "--workflow_id", "nobody")
        assert code != 0 and "history not found" in out + err, (code, out, err)


# ---- workflows ----


def test_a_workflow_is_started_shown_and_described(binary, folder):
    with support.Server(binary, folder / "data") as server:
        open_domain(server)
        memo = ["--memo_key", "note", "--memo", '"quick"', "--input", '{"number":7}']
        run_id = start(server, "one", *memo)
        assert show(server, "one") == ["WorkflowExecutionStarted", "DecisionTaskScheduled"]
        out = run_cadence(server, "workflow", "show", "--workflow_id", "one", "--event_id", "1")
        for words in ('Input:[{"number":7}]', "TaskList:{Name:list}", "WorkflowType:{Name:order}"):
            assert words in out, (words, out)
        described = describe(server, "one")
        assert described["ExecutionConfiguration"] == {
            "taskList": {"name": "list", "kind": "NORMAL"},
            "executionStartToCloseTimeoutSeconds": 600,
            "taskStartToCloseTimeoutSeconds": 10,
        }
        info = described["WorkflowExecutionInfo"]
        assert info["Execution"] == {"workflowId": "one", "runId": run_id}
        assert info["Type"] == {"name": "order"} and info["HistoryLength"] == 2
        assert info["CloseStatus"] is None and "note" in info["Memo"]["fields"]
        assert described["PendingDecision"]["State"] == "SCHEDULED"


def test_signals_and_a_request_to_cancel_are_in_the_history(binary, folder):
    with support.Server(binary, folder / "data") as server:
        open_domain(server)
        start(server, "one")
        to_one = ["--workflow_id", "one"]
        signal = ["workflow", "signal", *to_one, "--name", "paid", "--input", '"yes"']
        assert "Signal workflow succeeded" in run_cadence(server, *signal)
        both = ["workflow", "signalwithstart", *to_one, *WORKFLOW, "--name", "sent"]
        assert "SignalWithStart workflow succeeded" in run_cadence(server, *both)
        cancel = ["workflow", "cancel", *to_one, "--reason", "nobody waits"]
        assert "Cancel workflow succeeded" in run_cadence(server, *cancel)
        assert show(server, "one")[2:] == [
            "WorkflowExecutionSignaled",
            "WorkflowExecutionSignaled",
            "WorkflowExecutionCancelRequested",
        ]
        out = run_cadence(server, "workflow", "show", *to_one, "--print_full")
        for words in ('SignalName:paid, Input:["yes"]', "SignalName:sent", "Cause:nobody waits"):
            assert words in out, (words, out)
        assert "cancellation already requested" in refused(server, *cancel)


def test_a_terminated_workflow_stays_readable_and_takes_nothing_more(binary, folder):
    with support.Server(binary, folder / "data") as server:
        open_domain(server)
        first = start(server, "one")
        to_one = ["--workflow_id", "one"]
        terminate = ["workflow", "terminate", *to_one, "--reason", "enough"]
        assert "Terminate workflow succeeded" in run_cadence(server, *terminate)
        assert show(server, "one")[-1] == "WorkflowExecutionTerminated"
        described = describe(server, "one")
        assert described["WorkflowExecutionInfo"]["CloseStatus"] == "TERMINATED"
        assert described["PendingDecision"] is None
        signal = ["workflow", "signal", *to_one, "--name", "paid"]
        for words in (terminate, signal, ["workflow", "cancel", *to_one]):
            assert "workflow execution already completed" in refused(server, *words).lower()
        assert start(server, "one") != first  # ended without success: the id is free
        assert describe(server, "one")["WorkflowExecutionInfo"]["CloseStatus"] is None


def test_mistakes_with_workflows_are_told_in_the_words_that_users_know(binary, folder):
    with support.Server(binary, folder / "data") as server:
        open_domain(server)
        run_id = start(server, "one")
        again = refused(server, "workflow", "start", "--workflow_id", "one", *WORKFLOW)
        running = f"Workflow execution is already running. WorkflowId: one, RunId: {run_id}"
        assert running in again, again
        for words in (["show"], ["describe"], ["terminate"], ["signal", "--name", "paid"]):
            said = refused(server, "workflow", *words, "--workflow_id", "nobody")
            assert "Workflow execution not found.  WorkflowId: nobody" in said, said
        said = refused(server, "tasklist", "describe", "--tasklist", "list")
        assert "No poller for tasklist: list" in said, said


class OneDecision(threading.Thread):
    """A worker that takes one decision and ends the run with it."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.channel = grpc.insecure_channel(server.grpc)
        self.worker = service_worker_pb2_grpc.WorkerAPIStub(self.channel)

    def run(self):
        poll = worker_api.PollForDecisionTaskRequest(
            domain="d",
            task_list=tasklist_pb2.TaskList(name="list"),
            identity="the worker",
            binary_checksum="checksum-1",
        )
        task = self.worker.PollForDecisionTask(poll, metadata=PLACES, timeout=support.LIMIT)
        end = decision_pb2.CompleteWorkflowExecutionDecisionAttributes()
        end.result.data = b'"done"'
        answer = worker_api.RespondDecisionTaskCompletedRequest(
            task_token=task.task_token,
            identity="the worker",
            binary_checksum="checksum-1",
            decisions=[decision_pb2.Decision(complete_workflow_execution_decision_attributes=end)],
        )
        self.worker.RespondDecisionTaskCompleted(answer, metadata=PLACES, timeout=support.LIMIT)


def test_workers_and_what_they_did_are_shown(binary, folder):
    with support.Server(binary, folder / "data") as server:
        open_domain(server)
        worker = OneDecision(server)
        worker.start()
        pollers = ["tasklist", "describe", "--tasklist", "list", "--tasklisttype", "decision"]
        support.wait_until(
            lambda: "the worker" in cadence(server, "d", *pollers)[1], "the poller to be shown"
        )
        start(server, "one")
        worker.join(support.LIMIT)
        assert not worker.is_alive()
        worker.channel.close()
        assert show(server, "one") == [
            "WorkflowExecutionStarted",
            "DecisionTaskScheduled",
            "DecisionTaskStarted",
            "DecisionTaskCompleted",
            "WorkflowExecutionCompleted",
        ]
        info = describe(server, "one")["WorkflowExecutionInfo"]
        assert info["CloseStatus"] == "COMPLETED"
        assert info["SearchAttributes"] == {"BinaryChecksums": ["checksum-1"]}
        assert info["AutoResetPoints"]["points"][0]["firstDecisionCompletedId"] == 4
        keys = run_cadence(server, "cluster", "get-search-attr")
        assert re.search(r"BinaryChecksums +\| KEYWORD", keys), keys


def decide(server):
    """One decision of the workflow that decides nothing: a worker as small as can be."""
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_worker_pb2_grpc.WorkerAPIStub(channel)
        task = stub.PollForDecisionTask(
            worker_api.PollForDecisionTaskRequest(
                domain="d", task_list=tasklist_pb2.TaskList(name="work"), identity="tiny"
            ),
            timeout=30,
        )
        assert task.task_token
        stub.RespondDecisionTaskCompleted(
            worker_api.RespondDecisionTaskCompletedRequest(
                task_token=task.task_token, identity="tiny"
            ),
            timeout=30,
        )


@support.proves("A-199", "A-201", "A-203", "A-210")
def test_a_run_is_reset_and_its_tasks_are_refreshed(binary, folder):
    with support.Server(binary, folder / "data") as server:
        assert cadence(server, "d", "domain", "register", "--global_domain", "false")[0] == 0
        kind = ("--tasklist", "work", "--workflow_type", "order", "--execution_timeout", "60")
        first = workflow(server, "start", *kind, "--input", '"x"').split()[-1]
        decide(server)
        workflow(server, "signal", "--name", "go", "--input", "1")
        decide(server)
        reset = ("reset", "--reason", "bad code")
        out = workflow(server, *reset, "--run_id", first, "--event_id", "4")
        shown = workflow(server, "show")
        for words in ("DecisionTaskFailed", "RESET_WORKFLOW", "WorkflowExecutionSignaled"):
            assert words in shown, (words, shown, out)
        assert "Terminated" in workflow(server, "show", "--run_id", first)
        workflow(server, *reset, "--reset_type", "LastDecisionScheduled")
        assert "DecisionTaskTimedOut" in workflow(server, "show"), "the second reset"
        workflow(server, "refresh-tasks")
        decide(server)
        workflow(server, *reset, "--reset_type", "LastDecisionCompleted")
        code, out, err = cadence(
            server, "d", "workflow", *reset, "--workflow_id", "wf", "--event_id", "99"
        )
        assert code != 0 and "Decision finish ID must be" in out + err, (code, out, err)


@support.proves("H-022")
def test_settings_are_changed_shown_and_restored(binary, folder):
    key = "limit.signalNameLength"
    mine = ("--filter", '{"domainName": "d"}')

    def value(*words):
        out = run_cadence(server, "admin", "config", "get", "--name", key, *words)
        return re.search(r"\d+", out)[0]

    with support.Server(binary, folder / "data") as server:
        open_domain(server)
        start(server, "w")
        words = ("workflow", "signal", "--workflow_id", "w", "--name", "a long name")
        run_cadence(server, *words)
        update = ("admin", "config", "update", "--name", key, "--value")
        run_cadence(
            server, *update, '{"Value": 5, "Filters": [{"Name": "domainName", "Value": "d"}]}'
        )
        refused(server, *words)
        assert value(*mine) == "5" and value() == "1000"
        assert key in run_cadence(server, "admin", "config", "list")
        restore = ("admin", "config", "restore", "--name", key)
        run_cadence(server, *restore, *mine)
        run_cadence(server, *words)
        assert value(*mine) == "1000"
        run_cadence(server, *update, '{"Value": 900, "Filters": []}')
        assert value() == "900" and value(*mine) == "900"
        refused(server, *update, '{"Value": "many", "Filters": []}')
        assert value() == "900"
        run_cadence(server, *restore)
        assert value() == "1000"
        assert key not in run_cadence(server, "admin", "config", "list")


support.main(sys.modules[__name__])
