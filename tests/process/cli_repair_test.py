"""The binary's own command line: what operators do to runs, shards and messages that are stuck,
and how they compare a domain with one of another server."""

import json
import re
import sys

import support
from cli_support import Cli
from cli_test import Group


def two_servers(binary, folder):
    return support.Server(binary, folder / "one"), support.Server(binary, folder / "two")


@support.proves("I-T06")
def test_a_domain_is_deprecated_deleted_and_compared_with_another(binary, folder):
    first, second = two_servers(binary, folder)
    with first as here, second as there:
        cli, other = Cli(binary, here.grpc), Cli(binary, there.grpc, "bought")
        migration = ["domain", "migration", "--destination_address", there.grpc]
        migration += ["--destination_domain", "bought"]
        cli("domain", "register", "--global_domain", "false", "--oe", "ann@example.org")
        assert "bought" in cli(*migration, code=1)  # it is not there yet
        other("domain", "register", "--global_domain", "false", "--oe", "ann@example.org")
        wanted = ["--search_attr", "CustomKeywordField:Keyword", "--tasklist", "mail"]
        assert cli(*migration, *wanted).startswith("No differences"), cli(*migration)
        assert cli.json("domain", "mi", *migration[2:]) == []

        other("domain", "update", "--retention", "7", "--owner_email", "bob@example.org")
        cli(
            "admin",
            "cluster",
            "add-search-attr",
            "--search_attr_key",
            "Customer",
            "--search_attr_type",
            "1",
        )
        value = '{"Value":500,"Filters":{"domainName":"orders"}}'
        cli("admin", "config", "update", "--name", "frontend.domainrps", "--value", value)
        wanted += ["--search_attr", "Customer:KEYWORD"]
        support.wait_until(
            lambda: {"what": "Customer:KEYWORD", "here": "KEYWORD"}.items()
            <= (cli.json(*migration, *wanted) or [{}])[-1].items(),
            "the search attribute",
        )
        found = {one["what"]: (one["here"], one["there"]) for one in cli.json(*migration, *wanted)}
        assert found == {
            "ownerEmail": ('"ann@example.org"', '"bob@example.org"'),
            "workflowExecutionRetentionPeriod": ('"72h0m0s"', '"168h0m0s"'),
            "frontend.domainrps": ("500", "2147483647"),
            "Customer:KEYWORD": ("KEYWORD", "-"),
        }, found
        table = cli(*migration, *wanted)
        assert re.search(r'^domain +ownerEmail +"ann@example.org" +"bob@example.org"$', table, re.M)
        assert re.search(r"^settings +frontend.domainrps +500 +2147483647$", table, re.M), table
        assert "KEY:TYPE" in cli(*migration, "--search_attr", "Customer", code=2)
        assert "--destination_domain" in cli(*migration[:4], code=2)

        assert cli("domain", "dep", "--force") == "Domain orders successfully deprecated.\n"
        assert re.search(r"Status: DEPRECATED", cli("domain", "describe")), cli(
            "domain", "describe"
        )
        cli("domain", "del", "--yes")
        cli("domain", "describe", code=1)


@support.proves("I-T19")
def test_runs_are_deleted_repaired_and_shown_and_domains_have_two_names(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cli = Cli(binary, server.grpc)
        said = cli("admin", "domain", "register", "--global_domain", "false")
        assert said == "Domain orders successfully registered.\n", said
        said = cli("admin", "domain", "getdomainidorname")
        name, domain_id = re.fullmatch(
            r"domainID for domainName (\S+) is (\S{36})\n", said
        ).groups()
        said = cli("admin", "d", "getdn", "--domain_id", domain_id)
        assert said == f"domainName for domainID {domain_id} is {name}\n", said
        assert "successfully updated" in cli("admin", "domain", "up", "--retention", "5")
        assert "RetentionInDays: 5" in cli("admin", "domain", "desc")
        assert name in cli("admin", "domain", "list")

        run_id = cli.start("order-7", "greet")
        which = ["-w", "order-7", "-r", run_id]
        assert "WorkflowExecutionStarted" in cli("admin", "workflow", "show", *which)
        shown = json.loads(cli("admin", "wf", "desc", *which))
        state = shown["mutableState"]
        assert state["ExecutionInfo"]["WorkflowID"] == "order-7", state
        assert state["VersionHistories"]["Histories"][0]["Items"][0]["EventID"] == 2, state
        shard = cli(
            "admin", "history_host", "getshard", "-w", "order-7", "--number_of_shards", "16"
        )
        assert shard.endswith(f" {shown['shardId']}\n"), (shard, shown["shardId"])
        assert "succeeded" in cli("admin", "workflow", "rt", *which)

        # nothing is wrong with it
        assert "was kept" in cli("admin", "workflow", "fix_corruption", *which)
        fixed = cli.json("admin", "wf", "fc", "-w", "order-7", "--skip_errors")
        assert fixed["executionsDeleted"] is False and fixed["historyDeleted"] is False, fixed
        cli("workflow", "describe", *which)

        assert "was deleted" in cli("admin", "workflow", "delete", "--remote", *which)
        cli("workflow", "describe", *which, code=1)
        assert "order-7" in cli("admin", "wf", "del", *which, code=1)
        cli.start("order-7", "greet")  # the id is free
        cli("admin", "wf", "del", "-w", "order-7")
        cli("admin", "domain", "deprecate")
        cli("admin", "domain", "delete", "--yes")
        cli("admin", "domain", "getdn", code=1)


@support.proves("I-T20")
def test_shards_hosts_and_queues_are_shown_and_what_has_no_meaning_says_why(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cli = Cli(binary, server.grpc)
        cli("domain", "register", "--global_domain", "false")
        cli.start("order-7", "greet")
        said = cli("admin", "history_host", "gsh", "-w", "order-7", "--number_of_shards", "16")
        shard = ["--shard_id", said.split()[-1]]
        listed = cli("admin", "shard", "list", "--pagesize", "4", "--page_id", "1")
        assert re.findall(r"^(\d+) +\S+$", listed, re.M) == ["4", "5", "6", "7"], listed
        before = cli.json("admin", "shard", "describe", *shard)
        assert re.search(r"range \d+: 1 rows in memory", before["transfers"]), before
        assert "1 wake-up timers in memory" in before["timers"], before
        assert before["host"] and before["host"] != "unknown", before
        assert before["timers"] in cli("admin", "shard", "d", *shard)
        assert cli("admin", "shard", "timers", *shard) == before["timers"] + "\n"
        assert (
            cli("admin", "queue", "describe", *shard, "--queue_type", "3")
            == before["timers"] + "\n"
        )
        host = json.loads(cli("admin", "history_host", "describe", "-w", "order-7"))
        assert host["shardIds"] == list(range(16)), host

        cli("admin", "shard", "closeShard", *shard)
        cli("workflow", "describe", "-w", "order-7")  # the next call takes the shard again
        after = cli.json("admin", "shard", "describe", *shard)
        ranges = [re.search(r"range (\d+)", one["transfers"])[1] for one in (before, after)]
        assert int(ranges[1]) > int(ranges[0]), ranges

        assert "99" in cli("admin", "shard", "describe", "--shard_id", "99", code=1)
        assert "--shard_id is missing" in cli("admin", "shard", "describe", code=2)
        task = ["--task_type", "3", "--task_id", "7", "--task_timestamp", "2026-11-15T09:00:00Z"]
        said = cli("admin", "shard", "rmtk", *shard, *task, code=1)
        assert "has no meaning here" in said and "RefreshWorkflowTasks" in said, said
        said = cli("admin", "queue", "reset", *shard, "--queue_type", "2", code=1)
        assert "has no meaning here" in said and "CloseShard" in said, said
        said = cli("admin", "shard", "setRangeID", *shard, "--range_id", "7", code=2)
        assert "cadenza admin shard closeShard" in said, said


@support.proves("I-T22")
def test_messages_that_could_not_be_applied_are_counted_read_purged_and_merged(binary, folder):
    with Group(binary, folder / "group", 2) as group:
        first, second = Cli(binary, group.grpc(0), "clash"), Cli(binary, group.grpc(1), "clash")
        # the name is taken in the other cluster: what it hears of the domain cannot be applied
        second("domain", "register", "--global_domain", "false")
        first("domain", "register", "--clusters", "cluster0,cluster1", "--ac", "cluster0")
        count = ["admin", "dlq", "count"]
        support.wait_until(
            lambda: second(*count, "--dlq_type", "domain", "--force") == "1\n", "the message"
        )
        assert re.search(r"^\(domains\) +1$", second("admin", "dlq", "c"), re.M)
        assert second.json(*count) == {"history": [], "domain": 1}
        queue = ["--dlq_type", "domain", "--source_cluster", "cluster0"]
        (letter,) = second.json("admin", "dlq", "read", *queue, "--max_message_count", "5")
        domain_id = first.json("domain", "describe")["domainInfo"]["uuid"]
        assert letter["id"] == domain_id, (letter, domain_id)
        said = second("admin", "dlq", "m", *queue, code=1)  # its cause is still there, so it stays
        assert "0 messages were applied; 1 still cannot be applied" in said, said
        assert "The name clash belongs to domain" in said, said
        assert second(*count, "--dlq_type", "domain") == "1\n"
        second("domain", "deprecate")
        second("domain", "delete", "--yes")
        last = ["--last_message_id", str(letter["messageId"])]
        said = second("admin", "dlq", "merge", *queue, *last)
        assert said == "Messages that were applied and left the queue: 1.\n", said
        assert second(*count, "--dlq_type", "domain") == "0\n"
        assert second.json("domain", "describe")["domainInfo"]["uuid"] == domain_id

        history = ["--dlq_type", "history", "--source_cluster", "cluster0"]
        assert second.json("admin", "dlq", "r", *history, "--shards", "0-3,7", "--mmc", "3") == []
        said = second("admin", "dlq", "p", *history, "--shards", "2,5-6", "--last_message_id", "7")
        assert said == "The messages were deleted.\n", said
        assert "0-3,7" in second("admin", "dlq", "read", *history, "--shards", "3-", code=2)
        assert "--shards 0-3,7" in second("admin", "dlq", "read", *history, code=2)
        assert "--source_cluster" in second("admin", "dlq", "read", "--shards", "3", code=2)
        assert "domain or history" in second(*count, "--dlq_type", "task", code=2)


@support.proves("I-T26")
def test_a_history_is_fetched_again_and_stores_of_others_are_not_here(binary, folder):
    with Group(binary, folder / "group", 2) as group:
        first, second = Cli(binary, group.grpc(0)), Cli(binary, group.grpc(1))
        first("domain", "register", "--clusters", "cluster0,cluster1", "--ac", "cluster0")
        run_id = first.start("order-7", "greet")
        which = ["-w", "order-7", "-r", run_id]
        described = ["workflow", "describe", *which]
        support.wait_until(lambda: second.run(*described)[0] == 0, "the copy")
        domain_id = first.json("domain", "describe")["domainInfo"]["uuid"]
        source = ["--source_cluster", "cluster0"]
        said = second("admin", "workflow", "resend", *which, *source)
        assert said == "The history of order-7 is as cluster0 has it.\n", said
        said = second("admin", "kafka", "rereplicate", "--domain_id", domain_id, *which, *source)
        assert said == "The history of order-7 is as cluster0 has it.\n", said
        assert len(second.events("order-7")) == len(first.events("order-7"))
        lost = ["-w", "order-7", "-r", "2b0d6d5a-1f3c-4e8e-9a57-0c6f6a4b7d11"]
        second("admin", "ka", "rrp", *lost, *source, code=1)
        second("admin", "workflow", "resend", *which, "--source_cluster", "cluster9", code=1)
        assert "--source_cluster" in second("admin", "workflow", "resend", *which, code=2)

        for words, instead in (
            ("kafka parse --input_file x --skip_errors", "admin dlq read"),
            ("elasticsearch catIndex --url http://x", "workflow count"),
            ("es index --index x", "visibility rebuild"),
            ("elasticsearch delete --index x", "visibility rebuild"),
            ("elasticsearch report --query x", "workflow count"),
            ("database scan --scan_type x", "admin store check"),
            ("db clean", "fix_corruption"),
            ("database decode_thrift --input x", "admin workflow describe"),
            ("database unsupported-workflow --rps 3", "admin store check"),
        ):
            said = first("admin", *words.split(), code=2)
            assert instead in said and said.count("\n") == 1, (words, said)


if __name__ == "__main__":
    support.main(sys.modules[__name__])
