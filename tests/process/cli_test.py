"""The binary's own command line: the domain commands against a server, and `cadenza group`."""

import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
from concurrent import futures

import grpc
import support


def cadenza(binary, *words, environment=None, **options):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("CADENCE")}
    return support.run(binary, *words, env={**clean, **(environment or {})}, **options)


class Domains:
    """`cadenza domain …` on one server and one domain; expects success unless told otherwise."""

    def __init__(self, binary, address, name):
        self.binary, self.address, self.name = binary, address, name

    def __call__(self, command, *flags, code=0, **options):
        done = cadenza(
            self.binary,
            "domain",
            command,
            "--address",
            self.address,
            "--domain",
            self.name,
            *flags,
            **options,
        )
        assert done[0] == code, (command, flags, done)
        return done[1] if code == 0 else done[2]

    def described(self):
        return json.loads(self("describe", "--format", "json"))


@support.proves("I-T01", "I-T02", "I-T05")
def test_a_local_domain_is_registered_described_and_updated(binary, folder):
    with support.Server(binary, folder / "data") as server:
        domain = Domains(binary, server.grpc, "orders")
        out = domain(
            "register",
            *("--global_domain", "false", "--retention", "5", "--description", "all orders"),
            *("--owner_email", "a@b", "--domain_data", "team=red,floor=2"),
        )
        assert out == "Domain orders successfully registered.\n", out
        text = domain("describe")
        for line in (
            "Name: orders",
            "Description: all orders",
            "OwnerEmail: a@b",
            "DomainData: floor=2, team=red",
            "Status: REGISTERED",
            "RetentionInDays: 5",
            "IsGlobal(XDC)Domain: false",
            "ActiveClusterName: cluster0",
            "FailoverVersion: -24",
        ):
            assert line in text.splitlines(), (line, text)
        assert domain("update", "--retention", "9") == "Domain orders successfully updated.\n"
        shown = domain.described()
        assert shown["domainInfo"]["description"] == "all orders", shown
        assert shown["domainInfo"]["data"] == {"team": "red", "floor": "2"}, shown
        assert shown["configuration"]["workflowExecutionRetentionPeriodInDays"] == 9, shown
        assert shown["failoverVersion"] == -24 and shown["isGlobalDomain"] is False, shown
        domain("update", "--description", "", "--dmd", "floor=3")
        shown = domain.described()
        assert "description" not in shown["domainInfo"], shown
        assert shown["domainInfo"]["data"] == {"team": "red", "floor": "3"}, shown
        by_id = cadenza(
            binary,
            *("domain", "describe", "--domain_id", shown["domainInfo"]["uuid"], "--print_json"),
            *("--address", server.grpc),
        )
        assert json.loads(by_id[1]) == shown, by_id


def test_flags_may_stand_before_the_words_and_in_the_environment(binary, folder):
    with support.Server(binary, folder / "data") as server:
        code, out, err = cadenza(
            binary,
            *("--address", server.grpc, "--do=d", "domain", "register", "--gd", "false"),
        )
        assert code == 0, (out, err)
        environment = {"CADENCE_CLI_ADDRESS": server.grpc, "CADENCE_CLI_DOMAIN": "d"}
        code, out, err = cadenza(binary, "d", "desc", environment=environment)
        assert code == 0 and "Name: d\n" in out, (out, err)
        code, out, err = cadenza(
            binary, "--domain", "other", "domain", "describe", environment=environment
        )
        assert code == 1 and "other" in err, (out, err)
        code, out, err = cadenza(
            binary,
            *("--transport", "grpc", "-t", "grpc", "admin", "domain", "list"),
            environment=environment,
        )
        assert code == 0 and out.splitlines()[-1].split()[0] == "d", (out, err)


def test_bad_binaries_come_and_go(binary, folder):
    with support.Server(binary, folder / "data") as server:
        domain = Domains(binary, server.grpc, "d")
        domain("register", "--gd", "false")
        domain("update", "--add_bad_binary", "5ad4", code=2)
        domain("update", "--add_bad_binary", "5ad4", "--reason", "loses mails")
        bad = domain.described()["configuration"]["badBinaries"]["binaries"]
        assert bad["5ad4"]["reason"] == "loses mails", bad
        assert "loses mails" in domain("describe")
        domain("update", "--remove_bad_binary", "5ad4")
        assert "badBinaries" not in domain.described()["configuration"]


def test_domains_are_listed_page_by_page_and_by_status(binary, folder):
    with support.Server(binary, folder / "data") as server:
        names = [f"d{number}" for number in range(7)]
        for name in names:
            Domains(binary, server.grpc, name)("register", "--gd", "false")
        assert "deprecated" in Domains(binary, server.grpc, "d3")("deprecate")

        def listed(*flags):
            done = cadenza(binary, "domain", "list", "--address", server.grpc, *flags)
            assert done[0] == 0, done
            return done[1]

        def names_of(text):
            found = [line.split()[0] for line in text.splitlines()[1:]]
            return [name for name in found if name not in support.SYSTEM_DOMAINS]

        assert names_of(listed()) == [name for name in names if name != "d3"]
        assert names_of(listed("--deprecated")) == ["d3"]
        assert names_of(listed("--all", "--page_size", "2")) == names
        assert names_of(listed("--prefix", "d5", "--print_full")) == ["d5"]
        in_json = json.loads(listed("--all", "--format", "json"))
        in_json = [one["domainInfo"]["name"] for one in in_json]
        assert in_json == [*support.SYSTEM_DOMAINS, *names], in_json
        both = cadenza(binary, "domain", "list", "--all", "--dep", "--address", server.grpc)
        assert both[0] == 2 and "exclude each other" in both[2], both


def test_a_domain_is_deleted_only_when_it_is_confirmed(binary, folder):
    with support.Server(binary, folder / "data") as server:
        domain = Domains(binary, server.grpc, "d")
        domain("register", "--gd", "false")
        err = domain("delete", "--yes", code=1)
        assert "run cadenza domain deprecate --domain d first" in err, err
        domain("deprecate")
        err = domain("delete", code=1, input="No\n")
        assert "nothing was deleted" in err, err
        domain("delete", code=1, stdin=subprocess.DEVNULL)
        assert domain.described()["domainInfo"]["status"] == "DEPRECATED"
        out = domain("delete", input="yes\n")
        assert "Name: d\n" in out and "successfully deleted" in out, out
        assert "does not exist" in domain("describe", code=1)
        domain("register", "--gd", "false")
        domain("deprecate", "--force")
        assert domain("delete", "--yes") == "Domain d successfully deleted.\n"


def test_a_local_domain_is_not_failed_over(binary, folder):
    with support.Server(binary, folder / "data") as server:
        domain = Domains(binary, server.grpc, "d")
        domain("register", "--gd", "false")
        domain("failover", "--active_cluster", "cluster1", code=1)
        domain("failover", "--active_clusters", "region.oslo:cluster1", code=1)
        assert domain.described()["failoverVersion"] == -24
        out = domain("list-failover-history")
        assert "No failover history" in out, out


def test_wrong_arguments_end_with_2_and_say_what_to_do(binary, folder):
    nowhere = ("--address", f"127.0.0.1:{support.free_port()}")
    for words, told in (
        (("domain", "register"), "--domain NAME"),
        (("domain", "register", "--domain", "d", "--retention", "x"), "--retention: 'x'"),
        (("domain", "register", "--domain", "d", "--retension", "3"), "did you mean --retention?"),
        (("domain", "register", "--domain", "d", "--gd", "maybe"), "neither true nor false"),
        (("domain", "register", "--domain"), "--domain needs a value"),
        (("domain", "update", "--domain", "d"), "nothing to change"),
        (("domain", "failover", "--domain", "d"), "--active_cluster"),
        (("domain", "failover", "--do", "d", "--acs", "oslo:c1"), "scope.name:cluster"),
        (("domain", "describe", "--do", "d", "--format", "yaml"), "neither table nor json"),
        (("domain", "describe", "--do", "d", "--transport", "tchannel"), "give grpc"),
        (("domain", "describe", "--do", "d", "--ct", "soon"), "--context_timeout"),
        (("domain", "describe", "--do", "d", "--address", "h:99999"), "port '99999' is not"),
        (("domain", "describe", "--do", "d", "--address", "h"), "of the form host:port"),
        (("domain", "describe", "d"), "one word too many"),
        (("group", "--clusters", "10"), "from 1 to 9"),
        (("domain", "rename"), "cadenza domain --help lists them"),
        (("domains",), "not a command"),
        (("--adress", "x", "domain", "list"), "did you mean --address?"),
        (("--domain", "d"), "no command given"),
    ):
        leading = () if words[0] == "group" else nowhere
        code, out, err = cadenza(binary, *leading, *words)
        assert code == 2 and told in err and out == "", (words, code, out, err)


def test_failures_end_with_1_and_say_what_to_do(binary, folder):
    nowhere = f"127.0.0.1:{support.free_port()}"
    err = Domains(binary, nowhere, "d")("describe", code=1)
    assert nowhere in err and "cadenza server" in err and "--address" in err, err
    with support.Server(binary, folder / "data") as server:
        domain = Domains(binary, server.grpc, "d")
        err = domain("describe", code=1)
        assert "d does not exist" in err and "cadenza domain list" in err, err
        domain("update", "--retention", "3", code=1)
        domain("register", "--gd", "false")
        err = domain("register", "--gd", "false", code=1)
        assert "already exists" in err and "cadenza domain update" in err, err
        domain("register", "--gd", "false", "--retention", "0", code=1)


def test_a_server_with_tls_is_asked_with_its_certificate(binary, folder):
    for name in ("server", "other"):
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"),
                *("-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN=127.0.0.1"),
                *("-addext", "subjectAltName=IP:127.0.0.1"),
                *("-keyout", f"{name}.key", "-out", f"{name}.pem"),
            ],
            cwd=folder,
            check=True,
            capture_output=True,
        )
    config = folder / "config.yaml"
    config.write_text(f"""services:
  frontend:
    rpc:
      tls:
        enabled: true
        certFile: {folder}/server.pem
        keyFile: {folder}/server.key
""")
    with support.Server(binary, folder / "data", "--config", str(config)) as server:
        domain = Domains(binary, server.grpc, "d")
        domain("register", "--gd", "false", "--tls_cert_path", str(folder / "server.pem"))
        domain("describe", "--tcp", str(folder / "other.pem"), code=1)
        domain("describe", code=1)
        err = domain("describe", "--tcp", str(folder / "missing.pem"), code=2)
        assert "--tls_cert_path" in err and "missing.pem" in err, err
        domain("describe", environment={"CADENCE_CLI_TLS_CERT_PATH": str(folder / "server.pem")})


@support.proves("I-003")
def test_help_stands_at_every_level(binary, folder):
    code, out, err = cadenza(binary, "--help")
    assert code == 0 and "Examples:" in out and err == "", (out, err)
    assert cadenza(binary, "help")[1] == cadenza(binary)[1] == out
    for words in (["domain"], ["workflow"], ["admin", "config"], ["workflow", "batch"]):
        code, text, err = cadenza(binary, *words, "--help")
        assert code == 0 and "Examples:" in text and err == "", (words, text, err)
        first = re.search(r"^  (\S.*?)  ", text, re.MULTILINE)[1].split()
        assert first[: len(words)] == words, first
        code, text, err = cadenza(binary, *first, "--help")
        assert code == 0 and "Flags:" in text and "Examples:" in text, (first, text)
        code, out, err = cadenza(binary, *words)
        assert code == 2 and "which one?" in err and out == "", (code, out, err)


@support.proves("I-003")
def test_mistakes_suggest_what_may_be_meant(binary, folder):
    for words, expected in (
        (["wrkflow", "list"], "did you mean cadenza workflow?"),
        (["workflow", "lst"], "did you mean cadenza workflow list?"),
        (["wf", "batch", "strt"], "did you mean cadenza workflow batch start?"),
        (["workflow", "utterly-else"], "cadenza workflow --help lists them"),
        (["workflow", "list", "--opn"], "did you mean --open?"),
        (["workflow", "show"], "give --domain NAME or set CADENCE_CLI_DOMAIN"),
        (["workflow", "show", "--domain", "d"], "--workflow_id is missing"),
    ):
        code, out, err = cadenza(binary, *words)
        assert code == 2 and expected in err and out == "", (words, code, out, err)


def test_shells_take_what_completion_prints(binary, folder):
    for shell in ("bash", "zsh", "fish"):
        code, out, err = cadenza(binary, "completion", shell)
        assert code == 0 and "signalwithstart" in out and "workflow_id" in out, (shell, err)
    code, out, err = cadenza(binary, "completion", "sh")
    assert code == 2 and "not one of bash, zsh and fish" in err, err
    script = folder / "completion"
    script.write_text(cadenza(binary, "completion", "bash")[1])

    def completed(*words):
        """What bash offers for the last of the words."""
        lines = (
            f"source {script}; COMP_WORDS=({' '.join(map(repr, ('cadenza', *words)))}); "
            f"COMP_CWORD={len(words)}; _cadenza; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        code, out, err = support.run("bash", "-c", lines)
        assert code == 0 and err == "", (words, err)
        return out.split()

    assert completed("work") == ["workflow"]
    assert completed("workflow", "sig") == ["signal", "signalwithstart"]
    assert completed("workflow", "batch", "") == ["start", "list", "describe", "terminate"]
    assert completed("workflow", "show", "--work") == ["--workflow_id"]
    assert completed("domain", "failover", "--active_clusters_j") == ["--active_clusters_json"]


@support.proves("I-001", "I-002")
def test_general_flags_have_short_names_one_dash_and_variables(binary, folder):
    with support.Server(binary, folder / "data") as server:
        register = ["domain", "register", "--gd", "false"]
        assert cadenza(binary, "-ad", server.grpc, "-do", "d", "-t", "grpc", *register)[0] == 0
        environment = {
            "CADENCE_CLI_ADDRESS": server.grpc,
            "CADENCE_CLI_DOMAIN": "d",
            "CADENCE_CONTEXT_TIMEOUT": "7",
            "CADENCE_CLI_TRANSPORT_PROTOCOL": "grpc",
            "CADENCE_CLI_JWT": "a.b.c",
        }
        code, out, err = cadenza(binary, "wf", "count", environment=environment)
        assert (code, out) == (0, "0\n"), err
        code, out, err = cadenza(binary, "wf", "count", "-ct=soon", environment=environment)
        assert code == 2 and "--context_timeout: 'soon'" in err, err
        code, out, err = cadenza(binary, "wf", "count", "-t", "tchannel", environment=environment)
        assert code == 2 and "is not supported" in err, err
        # the default address is that of gRPC; the real command line needs its flag
        code, out, err = cadenza(binary, "workflow", "list", "--help")
        assert "Default 127.0.0.1:7833" in out and "$CADENCE_CLI_ADDRESS" in out, out
        clean = {key: value for key, value in os.environ.items() if "CADENCE" not in key}
        real = ["--address", server.grpc, "--domain", "d", "workflow", "count"]
        assert support.run(support.CADENCE, "--transport", "grpc", *real, env=clean)[0] == 0
        assert support.run(support.CADENCE, "--ct", "2", *real, env=clean)[0] == 1


@support.proves("I-004")
def test_calls_say_who_calls(binary, folder):
    """A server in the place of the real one reads the headers of a call."""
    seen = []

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            seen.append(dict(details.invocation_metadata))
            return grpc.unary_unary_rpc_method_handler(lambda request, context: b"\x08\x05")

    door = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    door.add_generic_rpc_handlers((Handler(),))
    port = door.add_insecure_port("127.0.0.1:0")
    door.start()
    try:
        where = ["--address", f"127.0.0.1:{port}", "--domain", "d", "--jwt", "a.b.c"]
        assert cadenza(binary, "workflow", "count", *where)[:2] == (0, "5\n")
    finally:
        door.stop(None)
    (headers,) = seen
    assert headers["cadence-client-name"] == "cli", headers
    assert headers["cadence-client-feature-version"] == "1.7.0", headers
    assert headers["rpc-service"] == "cadence-frontend", headers
    assert headers["cadence-authorization"] == "a.b.c", headers
    assert "cadence-client-feature-flags" not in headers, headers


# --- a group ---------------------------------------------------------------------------------


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_base_port(count):
    while True:
        base = random.randrange(11000, 32000 - 1000 * count)
        if all(is_free(base + 1000 * i) and is_free(base + 1000 * i + 255) for i in range(count)):
            return base


def children_of(pid):
    """Pids of the children of any thread of a process."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def is_alive(pid):
    """Does it run? One that only waits to be noticed does not."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


class Group:
    """`cadenza group` on free ports."""

    def __init__(self, binary, folder, clusters, base=None):
        self.binary, self.folder, self.clusters = binary, folder, clusters
        self.base = base or free_base_port(clusters)

    def grpc(self, cluster):
        return f"127.0.0.1:{self.base + 1000 * cluster}"

    def launch(self):
        self.process = subprocess.Popen(
            [
                *(self.binary, "group", "--clusters", str(self.clusters)),
                *("--data", str(self.folder), "--base-port", str(self.base)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pids = []
        return self

    def __enter__(self):
        self.launch()
        self.lines = []
        while not self.lines or "Ctrl-C" not in self.lines[-1]:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"no group: {self.lines} {self.process.communicate()}")
            self.lines.append(line)
        self.pids = children_of(self.process.pid)
        assert len(self.pids) == self.clusters, (self.pids, self.lines)
        return self

    def end(self):
        """Its exit code, output and errors; and no child is left."""
        out, err = self.process.communicate(timeout=support.LIMIT)
        support.wait_until(lambda: not any(map(is_alive, self.pids)), "the children to end")
        return self.process.returncode, out, err

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.end()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)


def test_a_group_comes_up_answers_stops_and_has_everything_when_started_again(binary, folder):
    data = folder / "group"
    with Group(binary, data, 3) as group:
        for cluster in range(3):
            assert any(group.grpc(cluster) in line for line in group.lines), group.lines
            code, out, err = cadenza(binary, "health", "--address", group.grpc(cluster))
            assert code == 0, (out, err)
        domain = Domains(binary, group.grpc(0), "orders")
        domain("register", "--clusters", "cluster0,cluster1,cluster2", "--ac", "cluster0")
        before = domain.described()
        assert [one["clusterName"] for one in before["replicationConfiguration"]["clusters"]] == [
            "cluster0",
            "cluster1",
            "cluster2",
        ], before
        code, out, err = group.stop()
        assert code == 0 and "All clusters have stopped." in out and err == "", (code, out, err)
        for cluster in range(3):
            log = (data / f"cluster{cluster}" / "server.log").read_text()
            assert "cadenza has stopped" in log, log
    with Group(binary, data, 3, group.base) as again:
        domain = Domains(binary, again.grpc(0), "orders")
        assert domain.described() == before
        code, _, _ = again.stop(signal.SIGINT)
        assert code == 0, code


@support.proves("I-T03", "I-T04")
def test_a_failover_reaches_every_cluster_of_a_group(binary, folder):
    with Group(binary, folder / "group", 3) as group:
        domains = [Domains(binary, group.grpc(cluster), "orders") for cluster in range(3)]
        domains[0](
            "register",
            *("--clusters", "cluster0 cluster1 cluster2", "--active_cluster", "cluster0"),
            *("--active_clusters", "region.oslo:cluster0,region.lisbon:cluster2"),
        )

        def is_known(domain):
            words = ("domain", "describe", "--address", domain.address, "--domain", "orders")
            return cadenza(binary, *words)[0] == 0

        for domain in domains[1:]:
            support.wait_until(lambda: is_known(domain), "the domain to be replicated")
        err = domains[1]("update", "--retention", "4", code=1)
        assert "primary" in err and "--address" in err, err

        def places(domain):
            shown = domain.described()["replicationConfiguration"]
            region = shown["activeClusters"]["attributeScopes"]["region"]["clusterAttributes"]
            return shown["activeClusterName"], region["oslo"]["activeClusterName"]

        # At the same time, as far as the clusters know: neither undoes the other.
        domains[2]("failover", "--active_cluster", "cluster2", "--reason", "drill")
        domains[1]("failover", "--active_clusters", "region.oslo:cluster1")

        def has_moved(domain):
            return places(domain) == ("cluster2", "cluster1")

        for domain in domains:
            support.wait_until(lambda: has_moved(domain), "the failovers to be replicated")
        shown = domains[0].described()
        assert shown["failoverVersion"] % 10 == 2, shown
        text = domains[2]("list-failover-history", "--all")
        heading, *rows = text.splitlines()
        assert heading.split()[0] == "Time" and len(rows) >= 2, text
        assert rows == sorted(rows, key=lambda row: row.split()[0], reverse=True), text
        moved = [row for row in rows if "(domain)" in row and "cluster2" in row]
        assert moved and "FORCE" in moved[0], text
        events = json.loads(domains[2]("lfh", "--all", "--format", "json"))["failoverEvents"]
        moves = [move for event in events for move in event["clusterFailovers"]]
        targets = {move["toCluster"]["activeClusterName"] for move in moves}
        assert {"cluster1", "cluster2"} <= targets, events
        domains[0]("failover", "--active_cluster", "cluster7", code=1)


def test_a_child_that_ends_ends_the_group(binary, folder):
    with Group(binary, folder / "group", 2) as group:
        os.kill(group.pids[1], signal.SIGKILL)
        code, _, err = group.end()
        assert code == 1 and "has ended (signal 9)" in err, (code, err)


def test_a_group_that_is_killed_leaves_no_child(binary, folder):
    with Group(binary, folder / "group", 2) as group:
        assert group.stop(signal.SIGKILL)[0] == -signal.SIGKILL


def test_a_port_in_use_and_a_smaller_group_are_refused(binary, folder):
    data = folder / "group"
    with Group(binary, data, 2) as group:
        other = Group(binary, folder / "other", 2, group.base).launch()
        code, _, err = other.end()
        assert code == 1 and str(group.base) in err and "--base-port" in err, (code, err)
        assert not (folder / "other").exists()
        assert group.process.poll() is None
    code, _, err = Group(binary, data, 1).launch().end()
    assert code == 2 and "--clusters 2" in err, (code, err)


if __name__ == "__main__":
    support.main(sys.modules[__name__])
