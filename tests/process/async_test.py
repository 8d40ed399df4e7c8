"""Starts that are accepted now and done later, and diagnoses, on the real binary: with the real
CLI, and with kill -9 between the answer and the start."""

import json
import sys
import uuid

import grpc
from cadence.api.v1 import common_pb2, query_pb2, service_workflow_pb2 as api
from cadence.api.v1 import service_workflow_pb2_grpc, tasklist_pb2
from google.protobuf import duration_pb2

import support
from support import cadence

PLACES = [("rpc-caller", "test"), ("rpc-service", "cadence-frontend"), ("rpc-encoding", "proto")]
COUNT = 200  # requests that are accepted before the server is killed


def run_cadence(server, *words):
    """What a command that must succeed prints, in domain d."""
    code, out, err = cadence(server, "d", *words)
    assert code == 0, (words, code, out, err)
    return out


def open_domain(server):
    """Where asynchronous starts were off, and are switched on."""
    run_cadence(server, "domain", "register", "--global_domain", "false")
    run_cadence(server, "admin", "async-wf-queue", "update", "--json", '{"Enabled": false}')
    queue = json.dumps({"PredefinedQueueName": "queue1", "Enabled": True})
    run_cadence(server, "admin", "async-wf-queue", "update", "--json", queue)


def stub_of(server):
    return service_workflow_pb2_grpc.WorkflowAPIStub(grpc.insecure_channel(server.grpc))


def start_request(workflow_id):
    return api.StartWorkflowExecutionRequest(
        domain="d",
        workflow_id=workflow_id,
        request_id=str(uuid.uuid4()),
        workflow_type=common_pb2.WorkflowType(name="order"),
        task_list=tasklist_pb2.TaskList(name="list"),
        execution_start_to_close_timeout=duration_pb2.Duration(seconds=600),
        task_start_to_close_timeout=duration_pb2.Duration(seconds=10),
    )


def accept(stub, request):
    message = api.StartWorkflowExecutionAsyncRequest(request=request)
    stub.StartWorkflowExecutionAsync(message, metadata=PLACES, timeout=10)


def first_event(stub, workflow_id, domain="d"):
    """The attributes of the first event; None as long as there is no such workflow."""
    request = api.GetWorkflowExecutionHistoryRequest(
        domain=domain, workflow_execution=common_pb2.WorkflowExecution(workflow_id=workflow_id)
    )
    try:
        page = stub.GetWorkflowExecutionHistory(request, metadata=PLACES, timeout=10)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.NOT_FOUND, error
        return None
    return page.history.events[0].workflow_execution_started_event_attributes


@support.proves("J-028")
def test_the_cli_sets_the_queue_of_a_domain(binary, folder):
    with support.Server(binary, folder / "data") as server:
        open_domain(server)
        shown = run_cadence(server, "admin", "async-wf-queue", "get")
        assert "queue1" in shown and "true" in shown.lower(), shown
        stub = stub_of(server)
        request = start_request("wf")
        accept(stub, request)
        support.wait_until(lambda: first_event(stub, "wf") is not None, "the workflow starts")
        assert first_event(stub, "wf").request_id == request.request_id


@support.proves("A-049")
def test_what_was_accepted_starts_once_after_kill_9(binary, folder):
    with support.Server(binary, folder / "data") as server:
        open_domain(server)
        stub = stub_of(server)
        requests = [start_request(f"wf-{number}") for number in range(COUNT)]
        for request in requests:
            accept(stub, request)
        server.kill()
        server.start()
        stub = stub_of(server)
        for request in requests:
            name = request.workflow_id
            support.wait_until(lambda: first_event(stub, name) is not None, f"{name} starts")
            assert first_event(stub, name).request_id == request.request_id
            accept(stub, request)  # heard twice: known by its request id
        last = start_request("last")
        accept(stub, last)
        support.wait_until(lambda: first_event(stub, "last") is not None, "the queue is worked off")
        for request in requests:
            assert first_event(stub, request.workflow_id).request_id == request.request_id


def test_the_cli_starts_a_diagnosis_whose_report_can_be_queried(binary, folder):
    with support.Server(binary, folder / "data") as server:
        run_cadence(server, "domain", "register", "--global_domain", "false")
        stub = stub_of(server)
        request = start_request("wf")
        request.execution_start_to_close_timeout.seconds = 1
        run_id = stub.StartWorkflowExecution(request, metadata=PLACES, timeout=10).run_id
        support.wait_until(lambda: is_timed_out(stub, run_id), "the run times out")
        out = run_cadence(server, "workflow", "diagnose", "-w", "wf", "-r", run_id)
        assert f"Workflow Id: d-{run_id}" in out, out
        support.wait_until(lambda: report_of(stub, run_id)["DiagnosticsCompleted"], "the report")
        timeouts = report_of(stub, run_id)["DiagnosticsResult"]["Timeouts"]
        issue = timeouts["Issues"][0]
        assert issue["InvariantType"] == "The Workflow Execution has timed out", issue
        assert timeouts["RootCause"][0]["RootCauseType"] == "There are no pollers for the tasklist"


def is_timed_out(stub, run_id):
    request = api.GetWorkflowExecutionHistoryRequest(
        domain="d",
        workflow_execution=common_pb2.WorkflowExecution(workflow_id="wf", run_id=run_id),
    )
    events = stub.GetWorkflowExecutionHistory(request, metadata=PLACES, timeout=10).history.events
    return events[-1].HasField("workflow_execution_timed_out_event_attributes")


def report_of(stub, run_id):
    request = api.QueryWorkflowRequest(
        domain="cadence-system",
        workflow_execution=common_pb2.WorkflowExecution(workflow_id=f"d-{run_id}"),
        query=query_pb2.WorkflowQuery(query_type="query-diagnostics-report"),
    )
    answer = stub.QueryWorkflow(request, metadata=PLACES, timeout=10)
    return json.loads(answer.query_result.data)


support.main(sys.modules[__name__])
