"""Archives of the real binary: files on disk, the real `cadence` CLI, kills, a disk that fails."""

import json
import pathlib
import shutil
import sys

import grpc
from cadence.api.v1 import service_visibility_pb2 as visibility_api
from cadence.api.v1 import service_visibility_pb2_grpc
from cadence.api.v1 import service_workflow_pb2 as workflow_api, service_workflow_pb2_grpc
from google.protobuf import duration_pb2

import support
from support import cadence

# Runs go at once: no retention, no minutes over which deletions are spread.
SETTINGS = """
system.minRetentionDays: [{value: 0}]
system.workflowDeletionJitterRange: [{value: 0}]
"""
HERE = pathlib.Path(__file__).resolve().parent


def config_text(folder):
    provider = "{filestore: {fileMode: '0640', dirMode: '0750'}}"
    return f"""
archival:
  history: {{status: enabled, enableRead: true, provider: {provider}}}
  visibility: {{status: enabled, enableRead: true, provider: {provider}}}
domainDefaults:
  archival:
    history: {{status: enabled, URI: 'file://{folder}/archive/histories'}}
    visibility: {{status: enabled, URI: 'file://{folder}/archive/lists'}}
"""


def server_in(binary, folder):
    config, settings = folder / "config.yaml", folder / "settings.yaml"
    config.write_text(config_text(folder))
    settings.write_text(SETTINGS)
    flags = ("--config", str(config), "--dynamic-config", str(settings))
    return support.Server(binary, folder / "data", *flags)


def register(server, name="orders", retention="0"):
    words = ("domain", "register", "--global_domain", "false", "--retention", retention)
    code, out, err = cadence(server, name, *words)
    assert code == 0, (out, err)


def run_to_end(server, workflow_id, domain="orders"):
    """Starts a run and terminates it; its id."""
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_workflow_pb2_grpc.WorkflowAPIStub(channel)
        run_id = stub.StartWorkflowExecution(
            workflow_api.StartWorkflowExecutionRequest(
                domain=domain,
                workflow_id=workflow_id,
                workflow_type={"name": "order"},
                task_list={"name": "list"},
                execution_start_to_close_timeout=duration_pb2.Duration(seconds=600),
                task_start_to_close_timeout=duration_pb2.Duration(seconds=10),
                request_id=f"00000000-0000-4000-8000-{abs(hash(workflow_id)) % 10**12:012}",
            )
        ).run_id
        stub.TerminateWorkflowExecution(
            workflow_api.TerminateWorkflowExecutionRequest(
                domain=domain,
                workflow_execution={"workflow_id": workflow_id},
                reason="enough",
            )
        )
    return run_id


def history(server, workflow_id, run_id, domain="orders"):
    """The first page; None: there is none."""
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_workflow_pb2_grpc.WorkflowAPIStub(channel)
        try:
            return stub.GetWorkflowExecutionHistory(
                workflow_api.GetWorkflowExecutionHistoryRequest(
                    domain=domain,
                    workflow_execution={"workflow_id": workflow_id, "run_id": run_id},
                )
            )
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.NOT_FOUND, error
            return None


def await_archived(server, workflow_id, run_id, domain="orders"):
    def look():
        page = history(server, workflow_id, run_id, domain)
        return page if page is not None and page.archived else None

    return support.wait_until(look, f"{workflow_id} to be archived")


@support.proves("J-020", "J-021", "A-235")
def test_the_real_cli_shows_and_lists_runs_that_are_gone(binary, folder):
    with server_in(binary, folder) as server:
        register(server)
        code, out, err = cadence(server, "orders", "domain", "describe")
        assert code == 0 and "HistoryArchivalStatus: ENABLED" in out, (out, err)
        assert f"file://{folder}/archive/lists" in out, out
        run_id = run_to_end(server, "wf-1")
        page = await_archived(server, "wf-1", run_id)
        kinds = [event.WhichOneof("attributes") for event in page.history.events]
        assert kinds[0] == "workflow_execution_started_event_attributes", kinds
        assert kinds[-1] == "workflow_execution_terminated_event_attributes", kinds
        words = ("workflow", "listarchived", "--query", "WorkflowID = 'wf-1'", "--all")
        code, out, err = cadence(server, "orders", *words)
        assert code == 0 and run_id in out and "order" in out, (out, err)
        words = ("workflow", "show", "--workflow_id", "wf-1", "--run_id", run_id)
        code, out, err = cadence(server, "orders", *words)
        # Then it asks for what is pending, and says that there is no such run any more.
        assert code in (0, 1) and "WorkflowExecutionTerminated" in out, (out, err)
        files = list((folder / "archive" / "histories").glob("*_-24.history"))
        assert len(files) == 1 and files[0].stat().st_mode & 0o777 == 0o640, files
        batches = json.loads(files[0].read_text())
        assert batches[0]["events"][0]["eventType"] == "WorkflowExecutionStarted", batches
        records = list((folder / "archive" / "lists").glob("*/*.visibility"))
        assert json.loads(records[0].read_text())["CloseStatus"] == "TERMINATED", records
        assert server.stop() == 0


@support.proves("J-021")
def test_what_was_archived_is_there_after_kills(binary, folder):
    server = server_in(binary, folder)
    run_ids = {}
    for round_number in range(4):
        with server:
            if round_number == 0:
                register(server)
            for i in range(20):
                name = f"wf-{round_number}-{i}"
                run_ids[name] = run_to_end(server, name)
            server.kill()  # while some are on their way
    with server:
        for name, run_id in run_ids.items():
            page = await_archived(server, name, run_id)
            assert len(page.history.events) >= 3, name
        with grpc.insecure_channel(server.grpc) as channel:
            listed = list_all(channel)
        assert listed == set(run_ids.values()), len(listed)
        beside = [path for path in (folder / "archive").rglob("*.history*")]
        assert len([path for path in beside if path.suffix == ".history"]) == 80, len(beside)
        assert server.stop() == 0


def list_all(channel):
    """Run ids of all pages of seven."""
    stub = service_visibility_pb2_grpc.VisibilityAPIStub(channel)
    found, token = [], b""
    while True:
        page = stub.ListArchivedWorkflowExecutions(
            visibility_api.ListArchivedWorkflowExecutionsRequest(
                domain="orders", page_size=7, next_page_token=token, query="CloseStatus = 3"
            )
        )
        found += [info.workflow_execution.run_id for info in page.executions]
        token = page.next_page_token
        if not token:
            assert len(found) == len(set(found))
            return set(found)


def test_a_file_in_the_way_keeps_the_runs_until_it_is_gone(binary, folder):
    (folder / "archive").write_text("not a folder")
    server = server_in(binary, folder)
    with server:
        register(server)
        run_id = run_to_end(server, "wf")
        found = lambda: [line for line in server.lines() if "cannot be archived" in line["msg"]]
        support.wait_until(found, "a line in the log")
        page = history(server, "wf", run_id)
        assert page is not None and not page.archived, page
        metrics = support.get(server.http, "/metrics")[1]
        assert "history_archiver_archive_transient_error" in metrics
        (folder / "archive").unlink()
        assert server.stop() == 0
    with server:  # tried again within half a minute
        await_archived(server, "wf", run_id)
        assert server.stop() == 0


def test_an_archive_that_cadence_wrote_is_read(binary, folder):
    """A history with an event of every kind, under the name that Cadence's filestore gives it."""
    with server_in(binary, folder) as server:
        register(server)
        run_id = run_to_end(server, "wf")
        await_archived(server, "wf", run_id)
        (ours,) = (folder / "archive" / "histories").glob("*.history")
        shutil.copy(HERE.parents[1] / "src" / "wire" / "event_json_vectors.json", ours)
        page = history(server, "wf", run_id)
        assert page.archived and len(page.history.events) == 42, len(page.history.events)
        words = ("workflow", "show", "--workflow_id", "wf", "--run_id", run_id)
        code, out, err = cadence(server, "orders", *words)
        assert code in (0, 1) and "ChildWorkflowExecutionTerminated" in out, (out, err)
        assert server.stop() == 0


@support.proves("J-020")
def test_a_provider_that_is_not_served_is_refused_at_the_start(binary, folder):
    config = folder / "config.yaml"
    config.write_text(
        "archival: {history: {status: enabled, provider: {s3store: {region: us-east-1}}}}\n"
        "domainDefaults: {archival: {history: {URI: 's3://bucket'}}}\n"
    )
    server = support.Server(binary, folder / "data", "--config", str(config)).launch()
    assert server.process.wait(support.LIMIT) != 0
    assert "archival.history.provider" in server.text(), server.text()


if __name__ == "__main__":
    support.main(sys.modules[__name__])
