"""The real `cadence` command line against the real binary; it is in build/clients."""

import sys

import grpc
from cadence.api.v1 import service_worker_pb2 as worker_api
from cadence.api.v1 import service_worker_pb2_grpc as worker_stub
from cadence.api.v1 import tasklist_pb2

import support
from support import cadence


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


def decide(server):
    """One decision of the workflow that decides nothing: a worker as small as can be."""
    with grpc.insecure_channel(server.grpc) as channel:
        stub = worker_stub.WorkerAPIStub(channel)
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


support.main(sys.modules[__name__])
