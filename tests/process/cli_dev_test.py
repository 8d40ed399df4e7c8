"""`cadenza dev`: a server to throw away, and time that is skipped."""

import pathlib
import sys
import time

import support
from cli_support import Cli, Dev, worker

DAY = 86400 * 10**9


def spent(cli, workflow_id):
    """How long the run took by its own clock, in days; and its last event."""
    events = cli.json("workflow", "show", "-w", workflow_id)
    return (events[-1]["timestamp"] - events[0]["timestamp"]) / DAY, events[-1]["eventType"]


def test_a_throw_away_server_has_its_domain_and_leaves_nothing(binary, folder):
    with Dev(binary, "--domain", "orders") as dev:
        assert "Name: orders" in Cli(binary, dev.grpc)("domain", "describe")
        kept = pathlib.Path(dev.log).parent
        assert kept.is_dir()
        assert dev.stop() == 0
        assert not kept.exists()


def test_a_month_of_timers_takes_a_moment(binary, folder):
    with Dev(binary, "--domain", "orders", "--skip-time") as dev, worker(dev.grpc):
        cli, begin = Cli(binary, dev.grpc), time.monotonic()
        out = cli(
            *("workflow", "run", "-w", "long", "--tl", "mail", "--wt", "sleep", "-i", "30"),
            *("--execution_timeout", str(31 * 86400)),
        )
        assert "COMPLETED after 30d0h" in out and "result: 30" in out, out
        assert time.monotonic() - begin < support.LIMIT
        days, last = spent(cli, "long")
        assert 30 <= days < 30.1 and last == "WorkflowExecutionCompleted", (days, last)


def test_a_worker_that_has_a_task_stops_the_clock(binary, folder):
    with Dev(binary, "--domain", "orders", "--skip-time") as dev, worker(dev.grpc, folder):
        cli = Cli(binary, dev.grpc)
        cli.start("held", "linger", "--execution_timeout", str(31 * 86400))
        support.wait_until((folder / "entered").exists, "the activity")
        cli.start("sleeps", "sleep", "-i", "1", "--execution_timeout", str(31 * 86400))
        cli.wait_event("sleeps", "TimerStarted")
        time.sleep(0.5)  # many times as long as it has to be quiet
        assert "TimerFired" not in cli.events("sleeps")
        (folder / "leave").touch()
        cli.wait_event("sleeps", "WorkflowExecutionCompleted")
        days, _ = spent(cli, "sleeps")
        assert 1 <= days < 1.1, days


def test_a_timeout_alone_is_no_reason_to_jump(binary, folder):
    with Dev(binary, "--domain", "orders", "--skip-time") as dev, worker(dev.grpc):
        cli = Cli(binary, dev.grpc)
        cli.start("waits", "greet", "-i", '"Ann"')
        cli.wait_event("waits", "DecisionTaskCompleted")
        time.sleep(0.5)
        assert cli.events("waits")[-1] == "DecisionTaskCompleted"
        # somebody else's timer takes it along: its 600 s are over after a day
        cli.start("sleeps", "sleep", "-i", "1", "--execution_timeout", str(31 * 86400))
        cli.wait_event("sleeps", "WorkflowExecutionCompleted")
        cli.wait_event("waits", "WorkflowExecutionTimedOut")
        days, _ = spent(cli, "waits")
        assert 600 / 86400 <= days < 601 / 86400, days


def test_a_delayed_start_is_not_waited_for(binary, folder):
    with Dev(binary, "--domain", "orders", "--skip-time") as dev, worker(dev.grpc):
        cli = Cli(binary, dev.grpc)
        cli.start("later", "quick", "-i", '"Ann"', "--delay_start_seconds", "7200")
        cli.wait_event("later", "WorkflowExecutionCompleted")
        days, _ = spent(cli, "later")
        assert days >= 7200 / 86400, days


def test_without_the_flag_time_is_as_it_is(binary, folder):
    with Dev(binary, "--domain", "orders") as dev, worker(dev.grpc):
        cli = Cli(binary, dev.grpc)
        cli.start("sleeps", "sleep", "-i", "1", "--execution_timeout", str(31 * 86400))
        cli.wait_event("sleeps", "TimerStarted")
        time.sleep(0.5)
        assert "TimerFired" not in cli.events("sleeps")


support.main(sys.modules[__name__])
