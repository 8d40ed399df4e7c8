"""The workflow commands of the binary, beside the real `cadence` command line; with a worker."""

import contextlib
import json
import re
import subprocess
import sys
import threading
import time

import support
from cli_support import LIST, Cli, worker

STARTED = ["--tl", LIST, "--execution_timeout", "600"]


def opened(binary, server, domain="orders"):
    cli = Cli(binary, server.grpc, domain)
    cli("domain", "register", "--global_domain", "false")
    return cli


@contextlib.contextmanager
def served(binary, folder):
    """A server, its domain and a worker; the command line that talks to them."""
    with support.Server(binary, folder / "data") as server:
        cli = opened(binary, server)
        cli.server = server
        with worker(server.grpc, folder):
            yield cli


def cadence(server, *words, domain="orders"):
    """What the real command line prints when it succeeds."""
    code, out, err = support.cadence(server, domain, *words)
    assert code == 0, (words, code, out, err)
    return out


def json_in(text):
    """The JSON that a text ends with, behind words for people."""
    return json.loads(text[re.search(r"^[\[{\"]", text, re.MULTILINE).start() :])


# ---- the same walk with both ----


def facts_of(run):
    """Start, signal, query, list, reset, terminate, describe; what each told."""
    facts = {}
    as_json = ["--format", "json"]
    out = run("workflow", "start", "-w", "walk", "--wt", "greet", *STARTED, "-i", '"Ann"')
    facts["start"] = re.sub(r"run Id: \S+", "run Id: X", out)
    facts["signal"] = run("workflow", "signal", "-w", "walk", "-n", "paid", "-i", "12.5")
    show = ["workflow", "show", "-w", "walk"]
    support.wait_until(lambda: run(*show).count("DecisionTaskCompleted") >= 1, "the decision")
    support.wait_until(
        lambda: run(*show).count("DecisionTaskCompleted") == run(*show).count("DecisionTaskSched"),
        "all decisions",
    )
    query = run("workflow", "query", "-w", "walk", "--qt", "status")
    facts["query"] = json_in(query)
    listing = ["workflow", "list", "--open", "--workflow_id", "walk", *as_json]
    support.wait_until(lambda: len(json_in(run(*listing))) == 1, "the list")
    (row,) = json_in(run(*listing))
    facts["list"] = {key: row[key] for key in ("WorkflowType", "WorkflowID", "TaskList", "IsCron")}
    facts["count"] = run("workflow", "count", "--query", "WorkflowID = 'walk'").strip()
    out = run(
        *("workflow", "reset", "-w", "walk", "--reason", "why"),
        *("--reset_type", "FirstDecisionCompleted"),
    )
    new_run = re.search(r"[0-9a-f]{8}-[0-9a-f-]{27}", out)[0]
    described = json_in(run("workflow", "describe", "-w", "walk"))
    assert described["WorkflowExecutionInfo"]["Execution"]["runId"] == new_run
    facts["terminate"] = run("workflow", "terminate", "-w", "walk", "--reason", "enough")
    closed = json_in(run("workflow", "describe", "-w", "walk"))
    facts["describe"] = [
        closed["ExecutionConfiguration"],
        closed["WorkflowExecutionInfo"]["CloseStatus"],
        closed["WorkflowExecutionInfo"]["Type"],
        sorted(closed),
    ]
    kinds = re.findall(r"^ *\d+  (\w+)", run(*show), re.MULTILINE)
    facts["show"] = kinds[:4] + kinds[-1:]
    return facts


@support.proves("I-T07", "I-T08", "I-T09", "I-T10", "I-T12", "I-T13")
def test_both_command_lines_tell_the_same_facts(binary, folder):
    with support.Server(binary, folder / "data") as server:
        register = ["domain", "register", "--global_domain", "false"]
        they, we = lambda *words: cadence(server, *words, domain="theirs"), Cli(binary, server.grpc)
        assert they(*register).replace("theirs", "orders") == we(*register)
        with worker(server.grpc, domain="theirs"), worker(server.grpc):
            theirs, ours = facts_of(they), facts_of(we)
    for name, value in theirs.items():
        assert ours[name] == value, (name, ours[name], value)


def test_an_exported_history_is_that_of_the_real_command_line(binary, folder):
    with served(binary, folder) as cli:
        cli(
            *("workflow", "run", "-w", "w", "--wt", "quick", *STARTED, "-i", '"Ann"'),
            *("--memo_key", "from", "--memo", '"Bob"', "--retry_attempts", "3"),
            *("--search_attr_key", "CustomKeywordField", "--search_attr_value", "red"),
        )
        ours, theirs = folder / "ours.json", folder / "theirs.json"
        cli("workflow", "show", "-w", "w", "--output_filename", str(ours))
        cadence(cli.server, "workflow", "show", "-w", "w", "--output_filename", str(theirs))
        one, other = json.loads(ours.read_text()), json.loads(theirs.read_text())
        assert [e["eventType"] for e in one] == [e["eventType"] for e in other]
        for mine, real in zip(one, other):
            assert mine == real, (mine, real)


# ---- each command ----


@support.proves("I-T07")
def test_a_start_takes_everything_that_can_be_said(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cli = opened(binary, server)
        (folder / "input").write_text('{"from": "file"}')
        cli.start(
            "full",
            "greet",
            *("--decision_timeout", "7", "--cron", "@every 1h", "--cop", "1", "--wrp", "1"),
            *("--input_file", str(folder / "input"), "--memo_key", "a b", "--memo", '1 "two"'),
            *("--header_key", "trace", "--header_value", '"t1"'),
            *("--search_attr_key", "CustomIntField|CustomKeywordField"),
            *("--search_attr_value", "5|red", "--retry_attempts", "4", "--retry_backoff", "1.5"),
            *("--retry_max_interval", "1m", "--jitter_start_seconds", "1"),
        )
        event = cli.json("workflow", "show", "-w", "full")[0]
        told = event["workflowExecutionStartedEventAttributes"]
        assert told["taskStartToCloseTimeoutSeconds"] == 7 and told["cronSchedule"] == "@every 1h"
        assert told["cronOverlapPolicy"] == "BUFFER_ONE", told
        assert told["retryPolicy"] == {
            "initialIntervalInSeconds": 10,
            "backoffCoefficient": 1.5,
            "maximumIntervalInSeconds": 60,
            "maximumAttempts": 4,
        }, told
        described = cli.json("workflow", "describe", "-w", "full")["WorkflowExecutionInfo"]
        assert described["Memo"] == {"fields": {"a": 1, "b": "two"}}, described
        line = cli("workflow", "show", "-w", "full", "--print_full").splitlines()[0]
        assert 'input: {"from":"file"}' in line and 'header: {"fields":{"trace":"t1"}}' in line
        again = ["workflow", "start", "-w", "full", "--wt", "greet", *STARTED]
        assert "TerminateIfRunning" in cli(*again, code=1)
        cli(*again, "--workflowidreusepolicy", "TerminateIfRunning")
        for wrong, words in (
            (("--retry_interval", "3"), "--retry_attempts"),
            (("--memo_key", "a"), "--memo"),
            (("--cluster_attribute_scope", "region"), "go together"),
            (("--wrp", "Never"), "REJECT_DUPLICATE"),
            (("--input", "hello"), "needs its quotes"),
            (("--first_run_at_time", "soon"), "is not a time"),
        ):
            assert words in cli(*again, *wrong, code=2), (wrong, words)


@support.proves("I-T08")
def test_a_history_is_a_timeline(binary, folder):
    with served(binary, folder) as cli:
        cli("workflow", "run", "-w", "w", "--wt", "quick", *STARTED, "-i", '"Ann"')
        lines = cli("workflow", "show", "-w", "w").splitlines()
        assert re.match(r"   1  WorkflowExecutionStarted +0s  workflowType: quick, ", lines[0])
        assert re.fullmatch(
            r"  11  WorkflowExecutionCompleted +\S+s  result: paid", lines[-2]
        ), lines
        assert re.fullmatch(r"COMPLETED after \S+, 11 events", lines[-1]), lines
        assert lines == cli("workflow", "showid", "w").splitlines()
        run_id = cli.json("workflow", "describe", "-w", "w")["WorkflowExecutionInfo"]["Execution"]
        assert cli("workflow", "showid", "w", run_id["runId"]).splitlines() == lines
        one = json.loads(cli("workflow", "show", "-w", "w", "--event_id", "11"))
        assert one["workflowExecutionCompletedEventAttributes"]["result"] == "paid", one
        assert "  20" in cli("workflow", "show", "-w", "w", "--print_datetime").splitlines()[0]
        raw = cli("workflow", "show", "-w", "w", "--print_raw_time", "--print_event_version")
        assert re.match(r"   1  WorkflowExecutionStarted +\d{19}     -24  ", raw), raw
        points = cli("workflow", "show", "-w", "w", "--reset_points_only").splitlines()[:-1]
        assert len(points) == 2 and all("DecisionTaskCompleted" in line for line in points), points
        short = cli("workflow", "show", "-w", "w", "--max_field_length", "3").splitlines()[0]
        assert "workflowType: qui…" in short, short
        # observing one that is over shows it and how it ended
        out = cli("workflow", "observe", "-w", "w", "--show_detail")
        assert "result: paid" in out.splitlines()[-1] and "ActivityTaskCompleted" in out, out
        assert cli("workflow", "observeid", "w").count("\n") == 13
        assert cli.json("workflow", "observe", "-w", "w")["status"] == "COMPLETED"


def test_a_run_that_does_not_complete_ends_with_1(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cli = opened(binary, server)
        cli.start("w", "greet")
        watching = threading.Thread(
            target=lambda: seen.append(cli.run("workflow", "ob", "-w", "w"))
        )
        seen = []
        watching.start()
        time.sleep(0.2)
        cli("workflow", "terminate", "-w", "w", "--reason", "enough")
        watching.join()
        code, out, _ = seen[0]
        assert code == 1 and "TERMINATED after" in out and "reason: enough" in out, seen
        code, out, err = cli.run("workflow", "run", "--wt", "none", *STARTED, "--et", "1")
        assert code == 1 and "TIMED_OUT after 1" in out, (code, out, err)
        assert "No worker polls task list mail" in err, err


@support.proves("I-T11")
def test_queries_and_stacks_are_answered_by_the_worker(binary, folder):
    with served(binary, folder) as cli:
        cli.start("w", "greet", "-i", '"Ann"')
        cli.wait_event("w", "DecisionTaskCompleted")
        cli("workflow", "signal", "-w", "w", "--name", "paid", "-i", '"x"')
        query = ["workflow", "query", "-w", "w", "--query_type", "status"]
        paid = lambda: json.loads(cli(*query, "--input", "1 true", "--qcl", "eventual"))
        support.wait_until(lambda: paid() == {"paid": 1}, "the signal")
        assert cli("workflow", "stack", "-w", "w") == "greet\n  waits for a signal\n"
        assert "status" in json.loads(cli("workflow", "query-types", "-w", "w"))
        assert "query-types lists" in cli("workflow", "query", "-w", "w", "--qt", "none", code=1)
        cli("workflow", "signal", "-w", "w", "--name", "paid", "-i", '"done"')
        cli.wait_event("w", "WorkflowExecutionCompleted")
        assert "COMPLETED" in cli(*query, "--query_reject_condition", "not_open", code=1)
        assert json.loads(cli(*query, "--qrc", "not_completed_cleanly")) == {"paid": 2}
        assert "is not one of" in cli(*query, "--qcl", "weak", code=2)


@support.proves("I-T10")
def test_signals_cancels_restarts_and_refreshes_arrive(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cli = opened(binary, server)
        out = cli(
            *("workflow", "signalwithstart", "-w", "w", "--wt", "greet", *STARTED),
            *("--name", "paid", "--signal_input", "1", "-i", '"Ann"'),
        )
        assert out.startswith("SignalWithStart workflow succeeded. Workflow Id: w, run Id: "), out
        assert cli("workflow", "cancel", "-w", "w", "--reason", "twice") == (
            "Cancel workflow succeeded.\n"
        )
        assert cli("workflow", "refresh-tasks", "-w", "w") == "Refresh workflow task succeeded.\n"
        assert cli("admin", "workflow", "refresh-tasks", "-w", "w")
        restarted = cli("workflow", "restart", "-w", "w")
        assert restarted.startswith("Restarted Workflow Id: w, run Id: "), restarted
        cli("workflow", "terminate", "-w", "w")
        refused = cli("workflow", "signal", "-w", "w", "--name", "paid", code=1)
        assert "cadenza workflow restart" in refused, refused
        assert "listall" in cli("workflow", "terminate", "-w", "nobody", code=1)


@support.proves("I-T12", "I-003")
def test_lists_have_columns_filters_and_pages(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cli = opened(binary, server)
        for number in range(12):
            cli.start(f"w-{number}", "greet", "--memo_key", "n", "--memo", str(number))
        for number in range(3):
            cli("workflow", "terminate", "-w", f"w-{number}")
        count = ["workflow", "count", "--query"]
        support.wait_until(lambda: cli(*count, "CloseTime != missing") == "3\n", "the lists")
        heading, *rows = cli("workflow", "list", "--open").splitlines()
        assert heading.split("  ")[0] == "WORKFLOW TYPE" and len(rows) == 9, heading
        columns = re.split(r" {2,}", heading)
        assert columns == [
            *("WORKFLOW TYPE", "WORKFLOW ID", "RUN ID", "TASK LIST", "IS CRON", "START TIME"),
            *("EXECUTION TIME", "END TIME", "STATUS"),
        ], columns
        more = "--print_memo --print_search_attr --print_cron --print_full".split()
        heading, row = cli("workflow", "list", "--open", "--pagesize", "1", *more).splitlines()
        assert heading.endswith("MEMO   SEARCH ATTRIBUTES"), heading
        assert "n: 11" in row and "HISTORY LENGTH" in heading and "CRON SCHEDULE" in heading, row
        all_pages = ["workflow", "list", "--open", "--pagesize", "2"]
        assert len(cli(*all_pages).splitlines()) == 3
        assert len(cli(*all_pages, "--more").splitlines()) == 10
        assert len(cli("workflow", "listall", "--open", "--ps", "2").splitlines()) == 10
        closed = cli("workflow", "list", "--status", "terminated", "--earliest_time", "1h")
        assert closed.count("TERMINATED") == 3 and "w-0" in closed, closed
        assert cli("workflow", "list", "--status", "completed").count("\n") == 1
        query = ["--query", "CloseTime = missing", "--exclude_query", "WorkflowID = 'w-5'"]
        rows = cli.json("workflow", "list", "--more", *query)
        assert len(rows) == 8 and all(row["CloseStatus"] == "OPEN" for row in rows), rows
        assert json.loads(cli("workflow", "list", "--more", *query, "--print_json")) == rows
        assert len(json.loads(cli("workflow", "scan", "--print_json"))) == 12
        assert "is not one of COMPLETED, FAILED" in cli("workflow", "list", "--status", "x", code=2)
        assert "table nor json" in cli("workflow", "list", "--format", "xml", code=2)
        code, out, err = cli.run("workflow", "list", "--query", "Nonsense = 1")
        assert code == 1 and not out and err.startswith("cadenza workflow list: "), (code, out, err)


@support.proves("I-T13")
def test_resets_find_their_place_and_batches_their_workflows(binary, folder):
    with served(binary, folder) as cli:
        for name in ("a", "b", "c"):
            cli("workflow", "run", "-w", name, "--wt", "quick", *STARTED, "-i", '"Ann"')
        first = cli.json("workflow", "describe", "-w", "a")["WorkflowExecutionInfo"]["Execution"]
        reset = ["workflow", "reset", "-w", "a", "-r", first["runId"], "--reason", "drill"]
        for place, event in (
            (("--event_id", "4"), 4),
            (("--reset_type", "FirstDecisionCompleted"), 4),
            (("--reset_type", "LastDecisionCompleted"), 10),
            (("--reset_type", "LastDecisionCompleted", "--decision_offset", "-1"), 4),
            (("--reset_type", "FirstDecisionScheduled"), 3),
            (("--reset_type", "LastDecisionScheduled"), 9),
            (("--reset_type", "DecisionCompletedTime", "--earliest_time", "1h"), 4),
        ):
            out = cli(*reset, *place, "--skip_signal_reapply")
            assert re.match(rf"Reset Workflow Id: a to event {event}, run Id: ", out), (place, out)
            cli("workflow", "observe", "-w", "a")
        assert "give --event_id" in cli(*reset, code=2)
        assert "not one of FirstDecision" in cli(*reset, "--reset_type", "Never", code=2)
        assert "was not continued" in cli(*reset, "--reset_type", "LastContinuedAsNew", code=1)
        assert "--reset_points_only" in cli(
            *reset, "--reset_type", "BadBinary", "--reset_bad_binary_checksum", "x", code=1
        )
        done = ["workflow", "count", "--query", "CloseStatus = 'COMPLETED'"]
        support.wait_until(lambda: int(cli(*done)) >= 3, "the lists")
        (folder / "some").write_text("b\nc\t\n")
        (folder / "not").write_text("c\n")
        batch = ["workflow", "reset-batch", "--reason", "drill", "--reset_type"]
        batch += ["FirstDecisionCompleted"]
        files = ["--input_file", str(folder / "some"), "--exclude_file", str(folder / "not")]
        out = cli(*batch, *files, "--dry_run")
        assert out == "b: would go back to event 4\n1 done, 0 failed, 1 excluded.\n", out
        out = cli(*batch, "--query", "WorkflowID = 'c'", "--skip_current_completed")
        assert "c: skipped: its current run completed" in out, out
        assert re.match("c: back to event 4, run Id: ", cli(*batch, "--query", "WorkflowID = 'c'"))
        assert "no workflows; give" in cli(*batch, code=2)


@support.proves("I-T15")
def test_activities_are_answered_by_hand_and_runs_diagnosed(binary, folder):
    with served(binary, folder) as cli:
        cli.start("w", "buy")
        describe = ["workflow", "describe", "-w", "w"]
        pending = support.wait_until(
            lambda: (lambda all: all and all[1]["state"] == "STARTED" and all)(
                cli.json(*describe)["PendingActivities"]
            ),
            "both activities",
        )
        first, second = (activity["activityId"] for activity in pending)
        name = ["-w", "w", "--activity_id"]
        out = cli("workflow", "activity", "complete", *name, first, "--result", "null")
        assert out == "Complete activity successfully.\n", out
        out = cli("workflow", "act", "fail", *name, second, "--reason", "poor", "--detail", '"d"')
        assert out == "Fail activity successfully.\n", out
        cli.wait_event("w", "ActivityTaskFailed")
        cli("workflow", "observe", "-w", "w", code=1)
        failed = [
            event["activityTaskFailedEventAttributes"]
            for event in cli.json("workflow", "show", "-w", "w")
            if event["eventType"] == "ActivityTaskFailed"
        ]
        assert failed[0]["reason"] == "poor" and failed[0]["identity"].startswith("ann@"), failed
        report = cli.json("workflow", "diagnose", "-w", "w")["DiagnosticsResult"]
        kinds = [issue["InvariantType"] for issue in report["Failures"]["Issues"]]
        assert "Activity Failed" in kinds, report
        assert "Failures: Activity Failed\n" in cli("workflow", "diag", "-w", "w")


@support.proves("I-T16", "I-T23")
def test_task_lists_are_looked_at_and_divided(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cli = opened(binary, server)
        cli.start("w", "greet")
        describe = ["tasklist", "describe", "--tl", LIST]
        assert cli(*describe).startswith("No worker polls it.\n1 tasks wait, "), cli(*describe)
        with worker(server.grpc) as process:
            text = support.wait_until(
                lambda: (lambda out: "POLLER IDENTITY" in out and out)(cli(*describe)), "a poller"
            )
            assert str(process.pid) in text, text
            assert cli.json(*describe, "--tasklisttype", "activity")["pollers"]
            assert re.search(r"mail +decision +1", cli("tl", "list")), cli("tl", "list")
        divide = ["admin", "tasklist", "update-partition", "--tl", LIST, "--tlt", "decision"]
        cli(*divide, "--nrp", "3", "--nwp", "2")
        assert "/__cadence_sys/mail/2" in cli("tasklist", "list-partition", "--tl", LIST)
        assert cli("admin", "tl", "desc", "--tl", LIST) and cli("admin", "tasklist", "list")
        assert "give --num_read" in cli(*divide, code=2)
        assert "is not one of DECISION, ACTIVITY" in cli(*describe, "--tlt", "x", code=2)


# ---- on a terminal ----


def tmux(socket, *words):
    return subprocess.run(
        ["tmux", "-S", str(socket), *words], capture_output=True, text=True, check=True
    ).stdout


def test_observe_follows_live_on_a_terminal(binary, folder):
    with served(binary, folder) as cli:
        cli.start("w", "greet", "-i", '"Ann"')
        cli.wait_event("w", "DecisionTaskCompleted")
        socket = folder / "tmux"
        command = f"{binary} workflow observe -w w --address {cli.server.grpc} --domain orders"
        tmux(
            socket,
            *("-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "30"),
            f"{command}; echo ended with $?; sleep 60",
        )
        try:
            screen = lambda: tmux(socket, "capture-pane", "-p", "-e")
            waiting = re.compile(r"[⠋⠙⠹⠸⠼⠴⠦⠧] open for \S+, 4 events; nothing is pending")
            first = support.wait_until(lambda: waiting.search(screen()), "the progress line")
            support.wait_until(
                lambda: waiting.search(screen())[0] != first[0], "the progress line to move"
            )
            assert "\033[36mWorkflowExecutionStarted" in screen(), screen()  # in colours
            cli("workflow", "signal", "-w", "w", "--name", "paid", "-i", '"done"')
            text = support.wait_until(
                lambda: (lambda shown: "ended with 0" in shown and shown)(screen()), "its end"
            )
            assert "COMPLETED after" in text and "result: hello Ann" in text, text
            assert not waiting.search(text), text  # it was wiped
        finally:
            tmux(socket, "kill-server")


def test_colours_are_for_terminals_only(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cli = opened(binary, server)
        cli.start("w", "greet")
        assert "\033" not in cli("workflow", "show", "-w", "w")
        cli.environment["NO_COLOR"] = "1"
        on_terminal = ["script", "-qec", f"{binary} workflow show -w w", "/dev/null"]
        shown = subprocess.run(on_terminal, capture_output=True, env=cli.environment, check=True)
        assert b"\033[" not in shown.stdout, shown.stdout
        del cli.environment["NO_COLOR"]
        cli.environment["TERM"] = "xterm"
        shown = subprocess.run(on_terminal, capture_output=True, env=cli.environment, check=True)
        assert b"\033[36m" in shown.stdout, shown.stdout


support.main(sys.modules[__name__])
