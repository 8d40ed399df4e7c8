"""A store that is damaged on the disk: bytes of a table, and a log that was cut."""

import json
import sys

import grpc
from cadence.api.v1 import common_pb2, service_domain_pb2 as domain_api, service_domain_pb2_grpc
from cadence.api.v1 import service_workflow_pb2 as api, service_workflow_pb2_grpc as stubs
from cadence.api.v1 import tasklist_pb2
from google.protobuf import duration_pb2

import support

RUNS = 400


def start_runs(server, count):
    channel = grpc.insecure_channel(server.grpc)
    service_domain_pb2_grpc.DomainAPIStub(channel).RegisterDomain(
        domain_api.RegisterDomainRequest(
            name="orders",
            workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
        ),
        timeout=support.LIMIT,
    )
    stub = stubs.WorkflowAPIStub(channel)
    for number in range(count):
        stub.StartWorkflowExecution(
            api.StartWorkflowExecutionRequest(
                domain="orders",
                workflow_id=f"order-{number:04}",
                request_id=f"00000000-0000-4000-8000-{number:012}",
                workflow_type=common_pb2.WorkflowType(name="order"),
                input=common_pb2.Payload(data=f"payload-{number:04}".encode()),
                task_list=tasklist_pb2.TaskList(name="list"),
                execution_start_to_close_timeout=duration_pb2.Duration(seconds=3600),
                task_start_to_close_timeout=duration_pb2.Duration(seconds=10),
            ),
            timeout=support.LIMIT,
        )


def unreadable_runs(server, count):
    stub = stubs.WorkflowAPIStub(grpc.insecure_channel(server.grpc))
    failed = 0
    for number in range(count):
        request = api.GetWorkflowExecutionHistoryRequest(
            domain="orders",
            workflow_execution=common_pb2.WorkflowExecution(workflow_id=f"order-{number:04}"),
        )
        try:
            stub.GetWorkflowExecutionHistory(request, timeout=support.LIMIT)
        except grpc.RpcError as err:
            assert "Corruption" in err.details(), err
            failed += 1
    return failed


def flip_in_a_table(data):
    """Eight bytes of what only a history has; the name of its table."""
    for table in sorted((data / "rocks").glob("*.sst")):
        content = bytearray(table.read_bytes())
        at = content.find(b"payload-0200")
        if at > 0:
            content[at : at + 8] = bytes(byte ^ 0x5A for byte in content[at : at + 8])
            table.write_bytes(content)
            return table.name
    raise AssertionError("no table has the run")


def metric(server, name):
    _, text = support.get(server.http, "/metrics")
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))


def expect_told(binary, server, table):
    status, body = support.get(server.http, "/healthz")
    assert status == 200 and body.startswith("damaged: ") and table in body, (status, body)
    code, out, _ = support.run(binary, "health", "--address", server.grpc)
    assert code == 0 and table in out and "rows" in out, (code, out)
    words = ["admin", "doctor", "--address", server.grpc, "--format", "json"]
    code, out, _ = support.run(binary, *words)
    (finding,) = json.loads(out)
    assert code == 1 and table in finding["what"] and "backup" in finding["do"], (code, out)
    lines = [line for line in server.lines() if line.get("file") == table]
    assert lines and lines[0]["level"] == "error" and lines[0]["rows-about"] > 0, lines


def test_damage_of_a_table_is_found_told_and_not_copied(binary, folder):
    config = folder / "config.yaml"
    config.write_text("persistence: {datastores: {embedded: {scrubInterval: 1s}}}\n")
    data = folder / "data"
    with support.Server(binary, data, "--config", str(config)) as server:
        start_runs(server, RUNS)
        assert metric(server, "cadenza_store_damaged_places") == 0
        assert server.stop() == 0
    table = flip_in_a_table(data)
    with support.Server(binary, data, "--config", str(config)) as server:
        support.wait_until(
            lambda: metric(server, "cadenza_store_damaged_places") > 0, "the damage to be found"
        )
        expect_told(binary, server, table)
        failed = unreadable_runs(server, RUNS)
        assert 0 < failed < RUNS, failed
        support.wait_until(
            lambda: metric(server, "cadenza_store_damaged_runs") > 0, "the runs to be counted"
        )
        counted = metric(server, "cadenza_store_damaged_runs")
        assert failed <= counted <= failed + 2, (failed, counted)
        _, body = support.get(server.http, "/healthz")
        assert f"{counted:.0f} runs at the most have rows there" in body, body
        assert metric(server, "cadenza_store_damaged_rows") > 0
        assert metric(server, "cadenza_store_scrub_age_seconds") >= 0
        copy = folder / "backup"
        code, _, err = support.run(
            binary, "admin", "backup", str(copy), "--address", server.grpc
        )
        assert code == 1 and "what was copied is damaged" in err and table in err, (code, err)
        assert not copy.exists()


def test_a_log_that_was_cut_in_its_middle_is_refused(binary, folder):
    data = folder / "data"
    with support.Server(binary, data) as server:
        start_runs(server, RUNS)
        server.kill()
    log = max((data / "rocks").glob("*.log"), key=lambda path: path.stat().st_size)
    records = log.read_bytes().rstrip(b"\0")
    log.write_bytes(records[: len(records) // 2])
    server = support.Server(binary, data).launch()
    code = server.process.wait(support.LIMIT)
    assert code == 1 and f"{log.name} was cut: it ends before row" in server.text(), server.text()


support.main(sys.modules[__name__])
