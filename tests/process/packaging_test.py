"""What is packaged works: series of dashboards exist, configs start, the package is whole."""

import json
import pathlib
import re
import subprocess
import sys

import group_test
import support

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGING = ROOT / "packaging"
WORDS = {"by", "le", "sum", "rate", "increase", "operation", "domain", "up", "job", "cadenza"}
WORDS |= {"kind", "source_cluster", "instance"}


def series_of(text):
    """Names of series in an expression."""
    text = re.sub(r'"[^"]*"', "", text)
    text = re.sub(r"\[[^]]*\]", "", text)
    names = set(re.findall(r"[a-z_]{4,}", text)) - WORDS - {"histogram_quantile"}
    return {re.sub(r"_bucket$", "", name) for name in names}


def wanted_series():
    found = set()
    for path in (PACKAGING / "grafana").glob("*.json"):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", []):
                found |= series_of(target["expr"])
    for line in (PACKAGING / "prometheus" / "alerts.yaml").read_text().splitlines():
        if line.strip().startswith("expr:"):
            found |= series_of(line.split(":", 1)[1])
    return found


def test_dashboards_and_alerts_name_series_that_the_server_has(binary, folder):
    assert subprocess.run([ROOT / "tools" / "dashboards", "--check"], check=False).returncode == 0
    wanted = wanted_series()
    assert len(wanted) > 20, wanted
    # Of a group: some series are there only where there is another cluster.
    with group_test.group(binary, folder, 2) as (server, _):
        code, out, err = support.cadence(server, "d", "domain", "register", "--gd", "false")
        assert code == 0, (out, err)
        start = ["workflow", "start", "--workflow_id", "w", "--tl", "l", "--wt", "t", "--et", "60"]
        code, out, err = support.cadence(server, "d", *start)
        assert code == 0, (out, err)
        _, text = support.get(server.http, "/metrics")
        known = set(re.findall(r"# TYPE (\S+)", text))
        assert wanted <= known, wanted - known


def test_the_sample_of_one_cluster_starts(binary, folder):
    config = PACKAGING / "config" / "one.yaml"
    dynamic = PACKAGING / "config" / "dynamic.yaml"
    flags = ["--config", str(config), "--dynamic-config", str(dynamic)]
    with support.Server(binary, folder / "data", *flags) as server:
        code, out, err = support.cadence(server, "d", "domain", "register", "--gd", "false")
        assert code == 0, (out, err)


def test_the_samples_of_a_group_make_a_group(binary, folder):
    ports = [support.free_port() for _ in range(3)]
    servers = []
    for i in range(3):
        text = (PACKAGING / "config" / "group" / f"cluster{i}.yaml").read_text()
        for k, port in enumerate(ports):
            text = text.replace(f"cluster{k}.example:7833", f"127.0.0.1:{port}")
        config = folder / f"cluster{i}.yaml"
        config.write_text(text)
        places = (ports[i], support.free_port())
        flags = ["--config", str(config)]
        servers.append(support.Server(binary, folder / f"data{i}", *flags, ports=places))
    with servers[0], servers[1], servers[2]:
        register = ["domain", "register", "--active_cluster", "cluster0"]
        clusters = ["--clusters", "cluster0,cluster1,cluster2"]
        code, out, err = support.cadence(servers[0], "d", *register, *clusters)
        assert code == 0, (out, err)
        for server in servers[1:]:
            support.wait_until(
                lambda: support.cadence(server, "d", "domain", "describe")[0] == 0,
                "the domain to be in all clusters",
            )


def test_the_package_holds_what_a_machine_needs(binary, folder):
    done = subprocess.run(
        [ROOT / "tools" / "package", str(folder), str(binary)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    package = done.stdout.strip()
    files = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True).stdout
    for name in (
        "./usr/bin/cadenza",
        "./lib/systemd/system/cadenza.service",
        "./etc/cadenza/config.yaml",
        "./etc/logrotate.d/cadenza",
        "./usr/share/cadenza/grafana/server.json",
        "./usr/share/cadenza/grafana/replication.json",
        "./usr/share/doc/cadenza/operating.md",
    ):
        assert f" {name}\n" in files, (name, files)
    fields = subprocess.run(["dpkg-deb", "-f", package], capture_output=True, text=True).stdout
    assert "libuv1" in fields, fields  # what is not linked into the program
    subprocess.run(["dpkg-deb", "-x", package, str(folder / "root")], check=True)
    code, out, _ = support.run(str(folder / "root" / "usr" / "bin" / "cadenza"), "version")
    assert code == 0 and "cadenza" in out, out


support.main(sys.modules[__name__])
