"""Every example that --help shows is run, as it stands, against real servers.

Examples speak of domain `orders` with task list `mail`, of workflows by a few names, and of places
on the disk: a test makes them true first. What stands for something of the reader's own machine
(an address, a folder) is replaced by what the test has."""

import json
import pathlib
import re
import shlex
import subprocess
import sys

import support
from cli_support import LIST, Cli, worker
from cli_test import Group

ROOT = pathlib.Path(__file__).resolve().parents[2]
STARTED = ["--tl", LIST, "--execution_timeout", "600"]


def commands_of(cli):
    """The words of every command."""
    script = cli("completion", "bash")
    return [words for words, after in re.findall(r"^ +'(.+)'\) words='(.*)' ;;", script, re.M)]


def examples_of(cli, words):
    """The examples in the help of a command, of a group or of all."""
    text = cli(*words.split(), "--help")
    assert "\nExamples:\n" in text, (words, text)
    return [
        line.strip()
        for line in text.split("\nExamples:\n")[1].splitlines()
        if line.startswith("  cadenza ")
    ]


def all_examples(cli):
    found = []
    for words in ["", *commands_of(cli)]:
        examples = examples_of(cli, words)
        assert examples, words
        found += [example for example in examples if example not in found]
    return found


def is_about(example, *starts):
    return any(example.startswith(f"cadenza {start}") for start in starts)


# What a single server does not have, or what has no meaning here: the exit code, and what it says.
ELSEWHERE = {
    "cadenza workflow listarchived ": (1, r"archiv"),  # off unless a folder is given
    "cadenza admin workflow resend ": (1, r"followed"),
    "cadenza admin entity get ": (1, r"There is no entity"),
    "cadenza admin entity set ": (1, r"is not one of entities.types"),
    "cadenza admin kafka rereplicate ": (1, r"followed"),
    "cadenza admin shard removeTask ": (1, r"has no meaning here"),
    "cadenza admin queue reset ": (1, r"has no meaning here"),
    "cadenza admin shard setRangeID ": (2, r"cadenza admin shard closeShard"),
    "cadenza admin kafka parse": (2, r"this server has no message queues"),
    "cadenza admin elasticsearch ": (2, r"this server does not use ElasticSearch"),
    "cadenza admin database ": (2, r"cadenza admin "),
}


def run(cli, example, cwd):
    words = shlex.split(example)[1:]
    code, out, err = cli.run(*words, cwd=cwd)
    for start, (other_code, words_of_it) in ELSEWHERE.items():
        if example.startswith(start):
            assert code == other_code and re.search(words_of_it, err), (example, code, out, err)
            return
    assert code == 0, (example, code, out, err)


def prepare(cli):
    """What the examples speak of."""
    for name in ("order-7", "order-8"):
        cli.start(name, "buy" if name == "order-7" else "greet", "-i", '"Ann"')
    for name in ("done-7", "reset-7"):
        cli("workflow", "run", "-w", name, "--wt", "quick", *STARTED, "-i", '"Ann"')


NAMES = {"order-7": "buy", "order-8": "greet"}


def renewed(cli, example):
    """Before an example that needs an open workflow: starts it again if it has ended."""
    for name, kind in NAMES.items():
        if name in example:
            cli.start(name, kind, "-i", '"Ann"', "--wrp", "3")
            activities = re.search(r"--activity_id (\d+)", example)
            cli.wait_event(name, "DecisionTaskCompleted")
            return activities
    return None


def start_job(cli):
    """A batch job that is busy for some seconds."""
    for number in range(8):
        cli.start(f"batched-{number}", "greet", "--wrp", "3")
    query = 'WorkflowType = "greet" and CloseTime = missing'
    support.wait_until(
        lambda: int(cli("workflow", "count", "--query", query)) >= 8, "the workflows in the lists"
    )
    started = cli(
        *("workflow", "batch", "start", "--query", query, "--reason", "drill", "--yes"),
        *("--batch_type", "signal", "--signal_name", "paid", "--input", "1"),
        *("--rps", "1", "--concurrency", "1"),
    )
    return json.loads(started)["jobID"]


def make_schedule(cli, example):
    """Before an example about a schedule: it is there, or not yet."""
    if "schedule create" in example:
        cli.run("schedule", "delete", "--schedule_id", "nightly")
    else:
        when = ["--cron_expression", "0 3 * * *", "--wt", "greet", "--tl", LIST]
        cli.run("schedule", "create", "--schedule_id", "nightly", *when)


# Examples for which one running server is too much, or too little: other tests run them.
NOT_ALONE = ["admin store", "admin backup", "admin restore", "admin domain", "admin dlq"]
NOT_ALONE += ["admin cluster failover", "admin cluster rebalance"]


def test_the_examples_of_workflows_task_lists_and_settings_run(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cli = Cli(binary, server.grpc)
        examples = all_examples(cli)
        cli("domain", "register", "--global_domain", "false")
        with worker(server.grpc, folder):
            prepare(cli)
            for example in examples:
                if not is_about(
                    example,
                    "workflow",
                    "tasklist",
                    "cluster",
                    "schedule",
                    "config",
                    "health",
                    "completion",
                    "admin",
                ) or is_about(example, *NOT_ALONE):
                    continue
                activity = renewed(cli, example)
                if "query" in example or "stack" in example:
                    cli.start("order-7", "greet", "-i", '"Ann"', "--wrp", "3")
                    cli.wait_event("order-7", "DecisionTaskCompleted")
                if activity:
                    waiting = ["workflow", "describe", "-w", "order-7"]
                    pending = support.wait_until(
                        lambda: [
                            one["activityId"]
                            for one in cli.json(*waiting)["PendingActivities"] or []
                            if one["state"] == "STARTED"
                        ],
                        "the activity",
                    )
                    example = example.replace(activity[0], f"--activity_id {pending[0]}")
                if "--schedule_id" in example:
                    make_schedule(cli, example)
                if "--job_id job-1" in example:
                    job = start_job(cli)
                    example = example.replace("job-1", job)
                if "workflow run" in example:
                    example = example.replace("greet", "quick")
                if "10.0.0.7:7833" in example:
                    example = example.replace("10.0.0.7:7833", server.grpc)
                try:
                    run(cli, example, folder)
                except AssertionError:
                    print(server.process.poll(), server.text()[-4000:])
                    raise


def test_the_examples_of_domains_run(binary, folder):
    with Group(binary, folder / "group", 3) as group:
        cli = Cli(binary, group.grpc(0))
        examples = [one for one in all_examples(cli) if " domain " in one.split("--")[0] + " "]
        examples = [one for one in examples if is_about(one, "domain", "admin domain", "--domain")]
        assert len(examples) > 12, examples
        for number, example in enumerate(examples):
            name = f"orders-{number}"
            example = re.sub(r"--domain orders\b", f"--domain {name}", example)
            if "domain register" not in example:
                cli.environment["CADENCE_CLI_DOMAIN"] = name
                cli(
                    *("domain", "register", "--clusters", "cluster0,cluster1,cluster2"),
                    *("--active_cluster", "cluster0"),
                    *(() if "grace" in example else ("--active_clusters", "region.oslo:cluster1")),
                )
            if "domain delete" in example:
                cli("domain", "deprecate", "--domain", name)
                if "--yes" not in example:
                    example = f"{example} --yes"
            if "grace" in example:  # asked of the target, once all clusters know the domain
                for other in (1, 2):
                    there = Cli(binary, group.grpc(other))
                    support.wait_until(
                        lambda: there.run("domain", "describe", "--domain", name)[0] == 0,
                        "the domain to be replicated",
                    )
                example = f"{example} --address {group.grpc(1)}"
            if "--watch" in example:  # nothing is under way
                code, out, err = cli.run(*shlex.split(example)[1:])
                assert code == 1 and "no graceful failover" in err, (code, out, err)
                continue
            if "10.0.0.7:7833" in example:
                example = example.replace("10.0.0.7:7833", group.grpc(0))
                example = example.replace("_domain orders", f"_domain {name}")
            run(cli, example, folder)
        letters = [one for one in all_examples(cli) if is_about(one, "admin dlq")]
        assert len(letters) > 4, letters
        for example in letters:
            run(cli, example, folder)


def test_the_examples_of_servers_and_data_folders_run(binary, folder):
    with support.Server(binary, folder / "data") as server:
        cli = Cli(binary, server.grpc)
        examples = all_examples(cli)
        for example in examples:
            if is_about(example, "admin backup"):
                run(cli, example.replace("/backups", str(folder)), folder)
        server.stop()
    for example in examples:
        if is_about(example, "admin restore", "admin store"):
            run(cli, example.replace("/backups", str(folder)), folder)


def test_the_examples_of_dev_and_group_start_and_stop(binary, folder):
    cli = Cli(binary, "127.0.0.1:1")
    examples = [one for one in all_examples(cli) if is_about(one, "dev", "group")]
    assert len(examples) == 4, examples
    for example in examples:
        words = shlex.split(example)[1:]
        if words[0] == "dev":
            words += ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        else:
            with Group(binary, folder / "probe", 1) as probe:
                base = probe.base
            words += ["--base-port", str(base), "--data", str(folder / str(base))]
        process = subprocess.Popen(
            [binary, *words], stdout=subprocess.PIPE, text=True, env=cli.environment
        )
        line = ""
        while "Ctrl-C" not in line:
            line = process.stdout.readline()
            assert line, (example, process.wait())
        process.terminate()
        assert process.wait(support.LIMIT) == 0, example
        process.stdout.close()


def code_of(text):
    """Lines of the blocks of code of a page, and what stands in back quotes in its sentences."""
    fences = r"^```.*?\n(.*?)^```"
    for block in re.findall(fences, text, re.M | re.S):
        yield from block.splitlines()
    lines = re.sub(fences, "", text, flags=re.M | re.S).splitlines()
    yield from [line.strip() for line in lines if line.startswith("    ")]
    sentences = "\n".join(line for line in lines if not line.startswith("    "))
    yield from [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", sentences)]


def command_lines():
    """Every command line of a page: its page, the words behind `cadenza`."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        if page.name == "cli.md":  # is made from the tables
            continue
        for line in code_of(page.read_text()):
            found = re.match(r"(?:\$ )?(?:[a-z]+=\$\()?(?:\./)?(?:bin/)?cadenza (.*)", line)
            if found and "COMMAND" not in line:
                plain = re.split(r"\s#|[|;&>]|\s\\$", found[1])[0].translate({91: " ", 93: " "})
                yield page.name, [word for word in shlex.split(plain) if word.strip(".…")]


def test_every_command_line_of_the_pages_has_words_and_flags_that_exist(binary, folder):
    cli = Cli(binary, "127.0.0.1:1")
    lines = list(command_lines())
    assert len(lines) > 100, lines
    wrong = []
    for page, words in lines:
        code, _, err = cli.run(*words, "--help")
        wrong += [] if code == 0 else [(page, " ".join(words), err)]
    assert not wrong, wrong


def test_what_the_readme_leaves_in_a_clone_is_not_taken_for_source(binary, folder):
    found = re.findall(r"--data (\./\S+)", (ROOT / "README.md").read_text())
    for place in {"./data", "./data-group", *found}:
        ignored = subprocess.run(["git", "-C", ROOT, "check-ignore", "-q", f"{place}/file"])
        assert ignored.returncode == 0, place


def test_the_reference_is_what_the_tables_say(binary, folder):
    cli = Cli(binary, "127.0.0.1:1")
    text = (ROOT / "docs" / "cli.md").read_text()
    for words in commands_of(cli):
        is_group = "COMMAND --help for details" in cli(*words.split(), "--help")
        assert is_group or f"\n### cadenza {words}" in text, words


if __name__ == "__main__":
    support.main(sys.modules[__name__])
