"""Managed failover and rebalance in a group of two, by our own command line."""

import json
import re
import sys

import group_test
import support
from cli_examples_test import all_examples, is_about, run
from cli_support import Cli
from managed_failover_test import HERE, NAMES, THERE, active, from_to, register, wait_active

SLOWLY = ("--failover_batch_size", "1", "--failover_wait_time_second", "600")
QUICKLY = ("--failover_batch_size", "1", "--failover_wait_time_second", "1")
FAILOVER = ("admin", "cluster", "failover")
REBALANCE = ("admin", "cluster", "rebalance")


def state(cli, *flags):
    return json.loads(cli(*FAILOVER, "query", *flags))


@support.proves("I-T21")
def test_a_dry_run_lists_what_would_move_and_moves_nothing(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        cli = Cli(binary, clusters[0].grpc)
        register(clusters, NAMES, IsManagedByCadence="true", PreferredCluster=THERE)
        register(clusters, ["own"])
        out = cli(*FAILOVER, "start", *from_to(HERE, THERE), "--dry_run")
        rows = [re.split(r"  +", line.strip()) for line in out.splitlines()]
        assert rows[0] == ["DOMAIN", "WHAT", "FROM", "TO", "HOW"], out
        assert rows[1:-1] == [[name, "domain", HERE, THERE, "at once"] for name in NAMES], out
        assert "4 domains would move." in out, out
        some = ("--domains", f"{NAMES[0]},{NAMES[2]}", "--dry_run", "--format", "json")
        moves = json.loads(cli(*FAILOVER, "start", *from_to(HERE, THERE), *some))
        assert [move["domain"] for move in moves] == [NAMES[0], NAMES[2]], moves
        assert "4 domains would move." in cli(*REBALANCE, "start", "--dry_run")
        assert "0 domains" in cli(*FAILOVER, "start", *from_to(THERE, HERE), "--dry_run")
        assert active(clusters[0], NAMES) == [HERE] * 4
        code, _, err = cli.run(*FAILOVER, "query")
        assert code == 1 and "failover start begins one" in err, err


@support.proves("I-T21")
def test_a_failover_is_watched_paused_resumed_aborted_and_rolled_back(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        cli = Cli(binary, clusters[0].grpc)
        register(clusters, NAMES, IsManagedByCadence="true")
        out = cli(*FAILOVER, "start", *from_to(HERE, THERE, *QUICKLY), "--watch")
        assert "wid: cadence-failover-manager\nrid: " in out, out
        lines = [line for line in out.splitlines() if "domains moved" in line]
        assert lines[-1] == "complete: 4 of 4 domains moved, 0 failed", out
        assert any(line.startswith("running: ") for line in lines), out
        wait_active(clusters, NAMES, THERE)
        assert "cadence-failover-manager" in cli(*FAILOVER, "list")
        out = cli(*FAILOVER, "rollback", *QUICKLY, "--watch")
        assert "complete: 4 of 4 domains moved" in out, out
        wait_active(clusters, NAMES, HERE)

        cli(*FAILOVER, "start", *from_to(HERE, THERE, *SLOWLY))
        support.wait_until(lambda: state(cli)["Success"] == 1, "a domain to move")
        code, _, err = cli.run(*FAILOVER, "start", *from_to(HERE, THERE))
        assert code == 1 and "failover abort ends it" in err, err
        assert "paused on cadence-failover-manager" in cli(*FAILOVER, "pause")
        support.wait_until(lambda: state(cli)["State"] == "paused", "the pause")
        assert "resumed" in cli(*FAILOVER, "resume")
        support.wait_until(lambda: state(cli)["State"] == "running", "it to go on")
        assert "cadence-failover-manager" in cli(*FAILOVER, "list", "--open")
        assert "aborted" in cli(*FAILOVER, "abort", "--reason", "enough")
        assert state(cli)["State"] == "aborted"
        code, out, _ = cli.run(*FAILOVER, "query", "--watch")
        assert code == 1 and "it was aborted" in out, out
        assert active(clusters[0], NAMES).count(THERE) == 1
        cli(*FAILOVER, "rollback", "--watch")
        wait_active(clusters, NAMES, HERE)


@support.proves("I-T21")
def test_a_drill_a_rebalance_and_a_fast_failover(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        cli = Cli(binary, clusters[0].grpc)
        register(clusters, NAMES, IsManagedByCadence="true", PreferredCluster=THERE)
        drill = ("--domains", NAMES[0], "--failover_drill_wait_second", "2")
        cli(*FAILOVER, "start", *from_to(HERE, THERE, *drill))
        out = cli(*FAILOVER, "query", "--failover_drill", "--watch")
        assert "complete: 1 of 1 domains moved, 0 failed" in out, out
        assert state(cli, "--failover_drill")["SuccessResetDomains"] == NAMES[:1]
        wait_active(clusters, NAMES, HERE)
        out = cli(*REBALANCE, "start", "--watch")
        assert "Rebalance workflow started" in out and "complete: 4 of 4" in out, out
        wait_active(clusters, NAMES, THERE)
        assert "cadence-rebalance-workflow" in cli(*REBALANCE, "list")
        fast = ("admin", "cluster", "failover_fast", "--target_cluster", HERE)
        code, _, err = cli.run(*fast, input="no\n")
        assert code == 1 and "nothing was moved" in err, err
        out = cli(*fast, "--yes")
        assert "Succeed 4, failed 0" in out, out
        wait_active(clusters, NAMES, HERE)


@support.proves("A-263", "I-T14")
def test_a_batch_sends_runs_to_a_cluster_that_was_added(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        here, there = (Cli(binary, cluster.grpc) for cluster in clusters)
        group_test.register(clusters[:1], "orders")
        for number in range(3):
            here.start(f"wf-{number}", "order")
        clusters_ = group_test.clusters_of(clusters)
        group_test.update(clusters[0], "orders", clusters=clusters_)
        support.wait_until(lambda: clusters[1].active("orders"), "the domain over there")
        started = here(
            *("workflow", "batch", "start", "--query", "WorkflowType = 'order'", "--yes"),
            *("--batch_type", "replicate", "--reason", "new", *from_to(HERE, THERE)),
        )
        job = json.loads(started)["jobID"]
        support.wait_until(
            lambda: "successfully" in here("workflow", "batch", "describe", "--job_id", job),
            "the batch",
        )
        for number in range(3):
            code, out, err = there.run("workflow", "show", "-w", f"wf-{number}")
            assert code == 0 and "WorkflowExecutionStarted" in out, (out, err)


def test_the_examples_run(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        cli = Cli(binary, clusters[0].grpc)
        register(clusters, ["orders", "mail"], IsManagedByCadence="true")
        mine = ["failover", "rebalance", "failover_fast"]
        mine = [f"admin cluster {one} " for one in mine]
        examples = [one for one in all_examples(cli) if is_about(one, *mine)]
        assert len(examples) >= 14, examples
        for example in examples:
            cli.run(*FAILOVER, "abort")
            cli.run(*FAILOVER, "abort", "--failover_drill")
            cli("admin", "cluster", "failover_fast", "--target_cluster", HERE, "--yes")
            if re.search(r"failover (pause|resume|query|abort|rollback)", example):
                slowly = QUICKLY if "--watch" in example else SLOWLY
                cli(*FAILOVER, "start", *from_to(HERE, THERE, *slowly))
                support.wait_until(lambda: state(cli)["Success"] >= 1, "a domain to move")
            run(cli, example, folder)


if __name__ == "__main__":
    support.main(sys.modules[__name__])
