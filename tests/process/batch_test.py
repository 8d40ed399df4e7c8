"""Batch jobs of the server, started and watched by the real `cadence` command line.

Runs are started without workers; what a batch does to them is seen in their descriptions."""

import json
import re
import sys
import time

import grpc
from cadence.api.v1 import service_worker_pb2 as worker_api
from cadence.api.v1 import service_worker_pb2_grpc, tasklist_pb2

import support


def cadence(server, *words, domain="d"):
    code, out, err = support.cadence(server, domain, *words)
    assert code == 0, (words, code, out, err)
    return out


def start_runs(server, names, kind="order"):
    """Lists are a moment behind, and a batch works on what they show: so it waits for them."""
    for name in names:
        cadence(
            server,
            *("workflow", "start", "--tasklist", "work", "--workflow_type", kind),
            *("--execution_timeout", "600", "--workflow_id", name),
        )

    def are_listed():
        found = cadence(server, "workflow", "count", "--query", f"WorkflowType = '{kind}'")
        return int(found) == len(names)

    support.wait_until(are_listed, f"{len(names)} runs of type {kind} to be listed")


def start_batch(server, verb, *flags, query="WorkflowType = 'order' and CloseTime = missing"):
    out = cadence(
        server,
        *("workflow", "batch", "start", "--query", query, "--reason", "tidy", "--yes"),
        *("--batch_type", verb),
        *flags,
    )
    return json.loads(out[out.index("{") :])["jobID"], out


def state(server, job):
    """The command line fails on a job that has not reported any progress yet."""

    def look():
        code, out, err = support.cadence(server, "d", "workflow", "batch", "desc", "--job_id", job)
        assert code == 0 or "unexpected end of JSON input" in err, (code, out, err)
        return code == 0 and json.loads(out)

    return support.wait_until(look, f"batch {job} to say how far it is")


def wait_finished(server, job):
    def look():
        return "finished successfully" in state(server, job)["msg"]

    support.wait_until(look, f"batch {job} to be finished")


def decide(server):
    """One decision of some run that decides nothing: a worker as small as can be."""
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_worker_pb2_grpc.WorkerAPIStub(channel)
        task = stub.PollForDecisionTask(
            worker_api.PollForDecisionTaskRequest(
                domain="d", task_list=tasklist_pb2.TaskList(name="work"), identity="tiny"
            ),
            timeout=30,
        )
        stub.RespondDecisionTaskCompleted(
            worker_api.RespondDecisionTaskCompletedRequest(
                task_token=task.task_token, identity="tiny"
            ),
            timeout=30,
        )


def is_open(server, name):
    out = json.loads(cadence(server, "workflow", "describe", "--workflow_id", name))
    return not out["WorkflowExecutionInfo"].get("CloseStatus")


@support.proves("A-263")
def test_a_batch_terminates_what_its_query_finds(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cadence(server, "domain", "register", "--global_domain", "false")
        names = [f"wf-{number}" for number in range(6)]
        start_runs(server, names)
        start_runs(server, ["other"], kind="invoice")
        job, out = start_batch(server, "terminate")
        assert "operating on 6 workflows" in out, out
        wait_finished(server, job)
        assert not any(is_open(server, name) for name in names)
        assert is_open(server, "other")
        listed = json.loads(cadence(server, "workflow", "batch", "list"))
        assert [one["jobID"] for one in listed] == [job], listed
        assert listed[0]["status"] == "COMPLETED" and "tidy" in listed[0]["reason"], listed


@support.proves("A-263")
def test_a_batch_that_is_slow_is_watched_survives_a_crash_and_is_stopped(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cadence(server, "domain", "register", "--global_domain", "false")
        names = [f"wf-{number}" for number in range(12)]
        start_runs(server, names)
        job, _ = start_batch(server, "signal", "--signal_name", "go", "--input", "1", "--rps", "1")

        def progress():
            return state(server, job).get("progress", {})

        support.wait_until(lambda: progress().get("SuccessCount", 0) >= 2, "some progress")
        before = progress()
        assert before["TotalEstimate"] == 12 and before["RPS"] == 1, before
        server.kill()
        server.start()
        support.wait_until(
            lambda: progress().get("SuccessCount", 0) > before["SuccessCount"], "more progress"
        )
        out = cadence(
            server, "workflow", "batch", "terminate", "--job_id", job, "--reason", "enough"
        )
        assert "terminated" in out, out
        assert "TERMINATED" in state(server, job)["msg"], out

        def signals():
            total = 0
            for name in names:
                out = cadence(server, "workflow", "show", "--workflow_id", name)
                count = len(re.findall("WorkflowExecutionSignaled", out))
                assert count <= 1, (name, out)
                total += count
            return total

        time.sleep(2)
        seen = signals()
        time.sleep(2)
        assert seen == signals() < 12, seen


def test_runs_are_reset_in_a_batch(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cadence(server, "domain", "register", "--global_domain", "false")
        start_runs(server, ["one", "two"])
        for name in ("one", "two"):
            decide(server)
        for name in ("one", "two"):
            cadence(server, "workflow", "terminate", "--workflow_id", name, "--reason", "r")
        cadence(
            server,
            *("workflow", "reset-batch", "--query", "WorkflowType = 'order'", "--reason", "again"),
            *("--reset_type", "FirstDecisionCompleted"),
        )
        support.wait_until(
            lambda: is_open(server, "one") and is_open(server, "two"), "both to run again"
        )


@support.proves("A-259")
def test_a_run_is_deleted(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cadence(server, "domain", "register", "--global_domain", "false")
        start_runs(server, ["one", "two"])
        cadence(server, "admin", "workflow", "delete", "--workflow_id", "one", "--remote")
        code, out, err = support.cadence(
            server, "d", "workflow", "describe", "--workflow_id", "one"
        )
        assert code != 0 and "not found" in (out + err).lower(), (out, err)
        assert is_open(server, "two")
        listed = cadence(server, "workflow", "list", "--query", "WorkflowType = 'order'")
        assert "two" in listed and "one" not in listed, listed


def test_a_domain_is_deprecated_with_its_runs(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cadence(server, "domain", "register", "--global_domain", "false")
        start_runs(server, ["one"])
        out = cadence(server, "domain", "deprecate")
        assert "in progress" in out, out
        support.wait_until(lambda: not is_open(server, "one"), "the run to be ended")
        assert "DEPRECATED" in cadence(server, "domain", "describe")


@support.proves("A-264")
def test_system_domains_are_there_from_the_first_start(binary, folder):
    known = {
        "cadence-system": "32049b68-7872-4094-8e63-d0dd59896a83",
        "cadence-batcher": "3116607e-419b-4783-85fc-47726a4c3fe9",
        "cadence-shadower": "59c51119-1b41-4a28-986d-d6e377716f82",
    }
    with support.Server(binary, folder / "data") as server:
        for _ in range(2):
            for name, identity in known.items():
                out = cadence(server, "domain", "describe", domain=name)
                assert identity in out and "RetentionInDays: 7" in out, out
                assert "IsGlobal(XDC)Domain: false" in out or "false" in out, out
            server.stop()
            server.start()


support.main(sys.modules[__name__])
