"""A backlog of real workflows that outlives kill -9, and is drained by many pollers.

All workflows are started while nobody polls; the server is killed; their first decisions are made,
each of which leaves an activity that nobody polls for; the server is killed again; then everything
is done. A task that got lost leaves a workflow open, and one that counted twice makes its history
longer than the others. BACKLOG says how many; 20000 unless told. The rates are printed."""

import os
import pathlib
import re
import subprocess
import sys

import grpc
from cadence.api.v1 import service_visibility_pb2 as visibility_api, service_visibility_pb2_grpc

import support

COUNT = int(os.environ.get("BACKLOG", "20000"))
DOMAIN = "bench-workflows"
EVENTS = 11  # of a workflow with one activity: no attempt more, no timeout
LIMIT = 3000  # seconds for a step
# Nearly all of it is in the store, so that reading it back is what happens.
SETTINGS = "matching.maxTasksInMemory: [{value: 1000}]\n"


def take_step(binary, server, name):
    """All workflows go a step on; (how many did, failures, repeats)."""
    words = ["--address", server.grpc, "--pid", str(server.process.pid), "--step", name]
    done = subprocess.run(
        [str(pathlib.Path(binary).parent / "bench"), *words, "--workflows", str(COUNT)],
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout, end="", flush=True)
    counts = re.match(r"(\d+) workflows: .* (\d+) failures, (\d+) twice", done.stdout)
    return tuple(int(count) for count in counts.groups())


def restart(server):
    server.kill()
    server.start()


def closed_runs(server):
    """(workflow id, close status, events) of every run that lists show as closed."""
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_visibility_pb2_grpc.VisibilityAPIStub(channel)
        request = visibility_api.ListWorkflowExecutionsRequest(
            domain=DOMAIN, page_size=1000, query="CloseTime > 0"
        )
        while True:
            page = stub.ListWorkflowExecutions(request, timeout=support.LIMIT)
            for run in page.executions:
                yield run.workflow_execution.workflow_id, run.close_status, run.history_length
            if not page.next_page_token:
                return
            request.next_page_token = page.next_page_token


def test_a_backlog_in_the_store_is_drained_after_kills_without_loss_or_repeat(binary, folder):
    settings = folder / "settings.yaml"
    settings.write_text(SETTINGS)
    flags = ("--dynamic-config", str(settings))
    with support.Server(binary, folder / "data", *flags) as server:
        for step in ("start", "decide", "end"):
            assert take_step(binary, server, step) == (COUNT, 0, 0), step
            if step != "end":
                restart(server)
        runs = support.wait_until(
            lambda: found if len(found := list(closed_runs(server))) >= COUNT else None,
            "all to be listed as closed",
        )
        assert len(runs) == COUNT and len({name for name, _, _ in runs}) == COUNT, len(runs)
        others = [run for run in runs if run[1:] != (runs[0][1], EVENTS)]
        assert not others, (len(others), others[:3])
        assert server.stop() == 0, server.text()[-3000:]


if __name__ == "__main__":
    support.main(sys.modules[__name__])
