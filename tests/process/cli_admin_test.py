"""The binary's own command line: settings, the cluster, schedules and batches."""

import json
import re
import sys

import support
from cli_support import LIST, Cli
from cli_test import cadenza


@support.proves("I-T18", "I-T24", "I-T25")
def test_settings_groups_queues_and_search_attributes(binary, folder):
    with support.Server(binary, folder / "data") as server:
        environment = {"CADENCE_CLI_ADDRESS": server.grpc, "CADENCE_CLI_DOMAIN": "d"}

        def run(*words, code=0):
            done = cadenza(binary, *words, environment=environment)
            assert done[0] == code, (words, done)
            return done[1] if code == 0 else done[2]

        run("domain", "register", "--global_domain", "false")
        assert re.search(r"^CustomIntField +INT$", run("cluster", "get-search-attr"), re.MULTILINE)
        added = ["--search_attr_key", "Customer", "--search_attr_type", "1"]
        run("admin", "cluster", "add-search-attr", *added)
        support.wait_until(
            lambda: re.search(r"^Customer +KEYWORD$", run("cluster", "get-search-attr"), re.M),
            "the attribute",
        )
        groups = ["admin", "isolation-groups"]
        assert run(*groups, "get-global") == "-- No groups found --\n"
        run(*groups, "update-global", "--set-drains", "zone-1,zone-2", "--set-drains", "zone-3")
        assert re.findall(r"(zone-\d) +DRAINED", run(*groups, "get-global")) == [
            "zone-1",
            "zone-2",
            "zone-3",
        ]
        run(*groups, "update-global", "--remove-all-drains")
        assert "No groups" in run(*groups, "get-global")
        run(*groups, "update-domain", "--json", '[{"Name":"zone-9","State":2}]')
        assert "zone-9" in run(*groups, "get-domain")
        assert "--set-drains" in run(*groups, "update-domain", code=2)
        config = ["admin", "config"]
        name = ["--name", "frontend.domainrps"]
        value = '{"Value":500,"Filters":{"domainName":"d"}}'
        run(*config, "update", *name, "--value", value, "--value", '{"Value":900}')
        assert json.loads(run(*config, "get", *name, "--filter", '{"domainName":"d"}')) == 500
        assert json.loads(run(*config, "operational-get", *name)) == 900
        (entry,) = json.loads(run(*config, "list"))
        assert entry["Name"] == "frontend.domainrps" and len(entry["Values"]) == 2, entry
        run(*config, "restore", *name)
        assert json.loads(run(*config, "list")) == []
        assert "frontend.domainrps" in run(*config, "listall")
        assert "give it as" in run(*config, "update", *name, "--value", "500", code=2)
        queue = ["admin", "async-wf-queue"]
        run(*queue, "update", "--json", '{"Enabled":true,"PredefinedQueueName":"q"}')
        assert json.loads(run(*queue, "get"))["configuration"]["predefinedQueueName"] == "q"


def test_the_cluster_tells_how_it_is(binary, folder):
    with support.Server(binary, folder / "data") as server:
        where = ["--address", server.grpc]
        code, out, err = cadenza(binary, "cluster", "health", *where)
        assert code == 0 and f"{server.grpc}: healthy" in out, (out, err)
        code, out, err = cadenza(binary, "cluster", "health", "--format", "json", *where)
        assert json.loads(out)["ok"] is True, (out, err)
        for words in (["cluster", "describe"], ["admin", "cl", "d"]):
            shown = json.loads(cadenza(binary, *words, *where)[1])
            assert shown["persistenceInfo"]["historyStore"]["backend"] == "embedded", shown
    code, out, err = cadenza(binary, "cluster", "health", *where)
    assert code == 1 and "cadenza server starts a server" in err, err


@support.proves("I-T17")
def test_a_schedule_is_made_looked_at_steered_and_deleted(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cli = Cli(binary, server.grpc)
        cli("domain", "register", "--global_domain", "false")
        name = ["--schedule_id", "nightly"]
        out = cli(
            *("schedule", "create", *name, "--cron_expression", "0 3 * * *", "--wt", "greet"),
            *("--tl", LIST, "--input", '"Ann"', "--overlap_policy", "SkipNew", "--jitter", "5"),
        )
        assert out == "Schedule nightly created.\n", out
        describe = ["schedule", "describe", *name]
        shown = cli.json(*describe)
        assert shown["spec"] == {"cronExpression": "0 3 * * *", "jitter": "5s"}, shown
        assert shown["action"]["startWorkflow"]["input"] == "Ann", shown
        support.wait_until(
            lambda: re.search(r"nightly +0 3 \* \* \* +greet +running", cli("sched", "l")),
            "the list",
        )
        # what the flags do not name stays
        cli("schedule", "update", *name, "--ce", "0 4 * * *", "--catch_up_policy", "One")
        shown = cli.json(*describe)
        assert shown["spec"] == {"cronExpression": "0 4 * * *", "jitter": "5s"}, shown
        assert shown["policies"]["overlapPolicy"] == "SKIP_NEW", shown
        assert shown["policies"]["catchUpPolicy"] == "ONE", shown
        cli("schedule", "pause", *name, "--reason", "holidays")
        paused = cli.json(*describe)["state"]
        assert paused["paused"] and paused["pauseInfo"]["reason"] == "holidays", paused
        cli("schedule", "unpause", *name)
        when = ["--start_time", "2026-11-01T00:00:00Z", "--end_time", "2026-11-02T00:00:00Z"]
        cli("schedule", "backfill", *name, *when, "--backfill_id", "first")
        assert "nothing to change" in cli("schedule", "update", *name, code=2)
        assert "is not one of SKIP_NEW" in cli(
            "schedule", "update", *name, "--overlap_policy", "Never", code=2
        )
        assert cli("schedule", "delete", *name) == "Schedule nightly deleted.\n"
        cli(*describe, code=1)


@support.proves("I-T14")
def test_a_batch_does_one_thing_to_all_that_a_query_finds(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cli = Cli(binary, server.grpc)
        cli("domain", "register", "--global_domain", "false")
        for name in ("a", "b"):
            cli.start(name, "greet")
        query = 'WorkflowType = "greet"'
        count = ["workflow", "count", "--query", query]
        support.wait_until(lambda: cli(*count) == "2\n", "the lists")
        batch = ["workflow", "batch", "start", "--query", query, "--reason", "drill"]
        code, out, err = cli.run(*batch, "--batch_type", "terminate", input="No\n")
        assert code == 1 and "2 workflows" in err and "is not started" in err, (out, err)
        assert "is not one of terminate" in cli(*batch, "--batch_type", "nothing", code=2)
        assert "--signal_name is missing" in cli(*batch, "--batch_type", "signal", code=2)
        started = json.loads(cli(*batch, "--batch_type", "terminate", "--yes"))
        job = ["--job_id", started["jobID"]]
        support.wait_until(
            lambda: "successfully" in cli("workflow", "batch", "describe", *job), "the batch"
        )
        for name in ("a", "b"):
            described = cli.json("workflow", "describe", "-w", name)["WorkflowExecutionInfo"]
            assert described["CloseStatus"] == "TERMINATED", described
        support.wait_until(
            lambda: json.loads(cli("workflow", "batch", "list")), "the job to be listed"
        )
        (listed,) = json.loads(cli("workflow", "batch", "list"))
        assert listed["jobID"] == started["jobID"] and listed["reason"] == "drill", listed


@support.proves("I-T03")
def test_a_failover_says_where_to(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cli = Cli(binary, server.grpc)
        cli("domain", "register", "--active_cluster", "cluster0")
        assert "--active_cluster" in cli("domain", "failover", code=2)
        assert "cluster9" in cli("domain", "failover", "--ac", "cluster9", code=1)


if __name__ == "__main__":
    support.main(sys.modules[__name__])
