"""The real binary as an operator meets it: starting, stopping, refusing, backups, full disks."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import grpc
from cadence.api.v1 import service_domain_pb2 as domain_api, service_domain_pb2_grpc as domain_stub
from cadence.api.v1 import service_worker_pb2 as worker_api, service_worker_pb2_grpc as worker_stub
from cadence.api.v1 import tasklist_pb2
from google.protobuf import duration_pb2

import support


def stub(server):
    return domain_stub.DomainAPIStub(grpc.insecure_channel(server.grpc))


def register(server, name, description=""):
    stub(server).RegisterDomain(
        domain_api.RegisterDomainRequest(
            name=name,
            description=description,
            workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
        ),
        timeout=support.LIMIT,
    )


def names(server):
    found, token = [], b""
    while True:
        page = stub(server).ListDomains(
            domain_api.ListDomainsRequest(page_size=1000, next_page_token=token),
            timeout=support.LIMIT,
        )
        found += [domain.name for domain in page.domains]
        token = page.next_page_token
        if not token:
            return [name for name in found if name not in support.SYSTEM_DOMAINS]


def fails_to_start(binary, folder, *flags):
    server = support.Server(binary, folder, *flags).launch()
    code = server.process.wait(support.LIMIT)
    return code, server.text()


def test_help_is_there_for_every_command(binary, folder):
    code, out, _ = support.run(binary, "--help")
    assert code == 0 and "cadenza server" not in out and "  server" in out, out
    for command in (
        ["server"],
        ["health"],
        ["admin", "store", "info"],
        ["admin", "store", "check"],
        ["admin", "backup"],
        ["admin", "restore"],
    ):
        code, out, _ = support.run(binary, *command, "--help")
        assert (
            code == 0 and "Usage: cadenza " + " ".join(command) in out and "Examples:" in out
        ), out
    code, _, err = support.run(binary, "server", "--dta", "x")
    assert code == 2 and "did you mean --data?" in err, err
    code, _, err = support.run(binary, "sever")
    assert code == 2 and "'sever' is not a command" in err, err


def test_it_starts_answers_and_stops_cleanly_and_has_everything_afterwards(binary, folder):
    server = support.Server(binary, folder / "data")
    with server:
        for number in range(10):
            register(server, f"d{number}")
        status, body = support.get(server.http, "/metrics")
        assert (
            status == 200
            and 'cadence_requests{cadence_service="cadence_frontend",operation="RegisterDomain",'
            'domain="_unknown_"} 10' in body
        )
        assert support.get(server.http, "/nothing")[0] == 404
        assert support.run(binary, "health", "--address", server.grpc)[:2] == (0, "OK\n")
        assert server.stop() == 0
        messages = [line["msg"] for line in server.lines()]
        assert "cadenza is ready" in messages and messages[-1] == "cadenza has stopped", messages
    with server:
        assert names(server) == [f"d{number}" for number in range(10)]
        assert server.stop() == 0


def test_calls_in_progress_end_before_it_stops(binary, folder):
    with support.Server(binary, folder / "data") as server:
        calls = [
            stub(server).RegisterDomain.future(
                domain_api.RegisterDomainRequest(
                    name=f"d{number}",
                    workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
                )
            )
            for number in range(50)
        ]
        calls[0].result()
        server.process.send_signal(signal.SIGTERM)
        done = sum(1 for call in calls if call.exception(support.LIMIT) is None)
        assert server.process.wait(support.LIMIT) == 0
        with server:
            assert len(names(server)) >= done > 0


def test_a_stop_while_it_starts_takes_effect_at_once(binary, folder):
    config = folder / "config.yaml"
    config.write_text("persistence:\n  numHistoryShards: 4096\n")
    with support.Server(binary, folder / "data", "--config", str(config)):
        pass
    server = support.Server(binary, folder / "data", "--config", str(config)).launch()
    support.wait_until(lambda: support.get(server.http, "/healthz"), "its health")
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(support.LIMIT) == 0
    messages = [line["msg"] for line in server.lines()]
    assert messages[-1] == "cadenza was told to stop before it was ready", messages[-1]
    assert messages.count("Shard taken.") < 4096


@support.proves("J-019")
def test_it_says_that_it_stops_then_ends_polls_then_stops(binary, folder):
    settings = folder / "dynamic.yaml"
    settings.write_text("frontend.shutdownDrainDuration:\n- value: 2s\n")
    with support.Server(binary, folder / "data", "--dynamic-config", str(settings)) as server:
        register(server, "d")
        poll = worker_stub.WorkerAPIStub(grpc.insecure_channel(server.grpc))
        poll = poll.PollForDecisionTask.future(
            worker_api.PollForDecisionTaskRequest(
                domain="d", task_list=tasklist_pb2.TaskList(name="l"), identity="w"
            ),
            timeout=support.LIMIT,
        )
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        support.wait_until(
            lambda: "ShuttingDown" in support.run(binary, "health", "--address", server.grpc)[1],
            "health to fail",
        )
        register(server, "still-served")
        assert not poll.done()
        assert not poll.result(support.LIMIT).task_token
        assert server.process.wait(support.LIMIT) == 0
        assert time.monotonic() - began > 1.9


def test_a_second_process_on_the_same_folder_is_refused(binary, folder):
    with support.Server(binary, folder / "data") as server:
        code, text = fails_to_start(binary, folder / "data")
        assert code == 1 and f"in use by process {server.process.pid}" in text, text
        register(server, "still-works")


@support.proves("J-003")
def test_another_shard_count_or_cluster_name_is_refused(binary, folder):
    with support.Server(binary, folder / "data") as server:
        server.stop()
    config = folder / "config.yaml"
    config.write_text("persistence:\n  numHistoryShards: 32\n")
    code, text = fails_to_start(binary, folder / "data", "--config", str(config))
    assert code == 1 and "16" in text and "32" in text, text
    code, text = fails_to_start(binary, folder / "data", "--cluster", "other")
    assert code == 1 and "cluster0" in text and "other" in text, text


def test_a_bad_setting_names_file_line_and_key(binary, folder):
    config = folder / "config.yaml"
    config.write_text("log:\n  level: info\npersistence:\n  numHistoryShard: 4\n")
    code, text = fails_to_start(binary, folder / "data", "--config", str(config))
    assert code == 1 and "config.yaml:4" in text and "numHistoryShards" in text, text
    assert not (folder / "data").exists()


@support.proves("H-040")
def test_the_log_goes_where_and_looks_as_the_settings_say(binary, folder):
    config, log = folder / "config.yaml", folder / "cadenza.log"

    def lines_of(settings):
        """(what the process wrote itself, lines of the file) of a server that came and went."""
        config.write_text(f"log: {{{settings}}}\n")
        log.write_text("")
        with support.Server(binary, folder / "data", "--config", str(config)) as server:
            assert server.stop() == 0
            return server.text().splitlines(), log.read_text().splitlines()

    own, filed = lines_of(f"outputFile: {log}, levelKey: severity, level: info")
    assert not own and filed, own
    for line in map(json.loads, filed):
        assert line["severity"] in ("info", "warn") and "level" not in line, line
        assert line["ts"] and line["msg"] and line["service"] and line["logging-call-at"], line
    own, filed = lines_of(f"outputFile: {log}, stdout: true")
    assert own and not filed and json.loads(own[0])["level"], own
    own, filed = lines_of(f"outputFile: {log}, encoding: console")
    assert not own and " info " in filed[0] and not filed[0].startswith("{"), filed
    own, filed = lines_of(f"outputFile: {log}, level: error")
    assert not own and not filed, filed
    config.write_text(f"log: {{outputFile: {folder / 'none' / 'file'}}}\n")
    code, text = fails_to_start(binary, folder / "data", "--config", str(config))
    assert code == 1 and "log.outputFile" in text, text


def count_of(log):
    return len(log.read_text().splitlines()) if log.exists() else 0


@support.proves("H-040")
def test_the_log_file_is_opened_again_when_logrotate_has_moved_it(binary, folder):
    config, log, old = folder / "config.yaml", folder / "cadenza.log", folder / "cadenza.log.1"
    config.write_text(f"log: {{outputFile: {log}}}\n")
    with support.Server(binary, folder / "data", "--config", str(config)) as server:
        for _ in range(3):
            log.rename(old)
            server.process.send_signal(signal.SIGHUP)
            support.wait_until(lambda: count_of(log) > 0, "a new log file")
            assert json.loads(log.read_text().splitlines()[0])["msg"].startswith("The log file was")
        filed = count_of(old)
        assert server.stop() == 0
        assert "cadenza has stopped" in log.read_text() and count_of(old) == filed


def test_a_hangup_does_not_end_a_server_whose_log_is_not_a_file(binary, folder):
    with support.Server(binary, folder / "data") as server:
        server.process.send_signal(signal.SIGHUP)
        support.wait_until(lambda: "SIGHUP" in server.text(), "SIGHUP in the log")
        register(server, "d")
        assert server.stop() == 0


def test_a_port_that_does_not_exist_is_refused(binary, folder):
    for flag in ("--grpc", "--http"):
        for address in ("127.0.0.1:99999", "127.0.0.1:65536", "127.0.0.1:x", "127.0.0.1"):
            code, out, err = support.run(binary, "server", flag, address)
            assert code == 2 and f"{flag}: '{address}' is not an address" in err, (code, err)
    assert not (folder / "data").exists()


def test_an_address_in_use_is_named(binary, folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = support.Server(binary, folder / "data", ports=(port, support.free_port())).launch()
        assert server.process.wait(support.LIMIT) == 1
        assert str(port) in server.text() and "in use" in server.text(), server.text()


def test_a_backup_of_a_running_server_is_restored_elsewhere(binary, folder):
    with support.Server(binary, folder / "data") as server:
        for number in range(20):
            register(server, f"d{number:02}")
        code, out, err = support.run(
            binary, "admin", "backup", str(folder / "backup"), "--address", server.grpc
        )
        assert code == 0, (out, err)
        register(server, "after-the-backup")
        code, _, err = support.run(
            binary, "admin", "backup", str(folder / "backup"), "--address", server.grpc
        )
        assert code == 1 and "exist" in err, err
    code, out, err = support.run(
        binary, "admin", "restore", str(folder / "backup"), "--data", str(folder / "restored")
    )
    assert code == 0, (out, err)
    with support.Server(binary, folder / "restored") as server:
        assert names(server) == [f"d{number:02}" for number in range(20)]
        register(server, "new")
        server.stop()
    code, out, err = support.run(
        binary, "admin", "store", "check", "--data", str(folder / "restored")
    )
    assert code == 0, (out, err)


def test_a_restored_member_catches_up_with_its_group_before_it_changes_global_domains(
    binary, folder
):
    ports = [(support.free_port(), support.free_port()) for _ in range(2)]

    def member(number, data):
        config = folder / f"cluster{number}.yaml"
        config.write_text(f"""clusterGroupMetadata:
  failoverVersionIncrement: 10
  primaryClusterName: cluster0
  currentClusterName: cluster{number}
  clusterGroup:
    cluster0: {{initialFailoverVersion: 1, rpcAddress: "127.0.0.1:{ports[0][0]}"}}
    cluster1: {{initialFailoverVersion: 2, rpcAddress: "127.0.0.1:{ports[1][0]}"}}
""")
        return support.Server(binary, data, "--config", str(config), ports=ports[number])

    def register_global(server, name):
        stub(server).RegisterDomain(
            domain_api.RegisterDomainRequest(
                name=name,
                is_global_domain=True,
                workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
            ),
            timeout=support.LIMIT,
        )

    def is_refused(server):
        try:
            register_global(server, "after")
            return False
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error
            assert "lost memory" in error.details(), error
            return True

    peer = member(1, folder / "peer")
    backup = str(folder / "backup")
    with member(0, folder / "data") as server:
        register_global(server, "before")
        assert support.run(binary, "admin", "backup", backup, "--address", server.grpc)[0] == 0
        register_global(server, "lost")
        with peer:
            support.wait_until(lambda: names(peer) == ["before", "lost"], "the peer to follow")
            peer.stop()
        server.kill()
    restored = folder / "restored"
    assert support.run(binary, "admin", "restore", backup, "--data", str(restored))[0] == 0
    for _ in range(2):  # alone it stays refused, a restart does not forget it
        with member(0, restored) as server:
            assert is_refused(server) and names(server) == ["before"]
            server.stop()
    with member(0, restored) as server, peer:
        support.wait_until(lambda: not is_refused(server), "it to catch up")
        assert names(server) == ["after", "before", "lost"]
        server.stop()
    with member(0, restored) as server:  # and it is noted
        register_global(server, "later")
        server.stop()


def test_info_and_check_read_a_stopped_folder_and_refuse_a_running_one(binary, folder):
    with support.Server(binary, folder / "data") as server:
        register(server, "orders")
        code, _, err = support.run(binary, "admin", "store", "info", "--data", str(folder / "data"))
        assert code == 1 and "process" in err, err
        server.stop()
    code, out, err = support.run(
        binary, "admin", "store", "info", "--data", str(folder / "data"), "--format", "json"
    )
    assert code == 0, err
    info = json.loads(out)
    assert (
        info["kinds"]["domain"]["rows"] == 4 and info["shards"] == 16 and info["closedCleanly"]
    ), info
    code, out, err = support.run(binary, "admin", "store", "check", "--data", str(folder / "data"))
    assert code == 0 and "0 problems" in out, (out, err)


def test_a_damaged_table_file_is_found(binary, folder):
    with support.Server(binary, folder / "data") as server:
        for number in range(200):
            register(server, f"d{number}", "x" * 500)
        server.stop()
    with support.Server(
        binary, folder / "data"
    ) as server:  # a start writes the log of the last run into tables
        server.stop()
    tables = sorted((folder / "data").rglob("*.sst"), key=lambda path: path.stat().st_size)
    assert tables, "no table file was written"
    damaged = bytearray(tables[-1].read_bytes())
    damaged[len(damaged) // 3] ^= 0xFF
    tables[-1].write_bytes(damaged)
    code, out, err = support.run(binary, "admin", "store", "check", "--data", str(folder / "data"))
    assert code == 1, (out, err)


def test_a_full_disk_stops_the_server_loudly_and_loses_nothing(binary, folder):
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)], check=True)
    try:
        acknowledged = []
        with support.Server(binary, disk / "data") as server:
            filler = disk / "filler"
            error = None
            for number in range(100000):
                try:
                    register(server, f"d{number}", "x" * 20000)
                    acknowledged.append(f"d{number}")
                except grpc.RpcError as caught:
                    error = caught
                    break
            assert error is not None, "the disk never became full"
            # the call that met the full disk, or one that came while the server already stopped
            assert (
                error.code() == grpc.StatusCode.UNAVAILABLE or "Shutting down" in error.details()
            ), error
            assert server.process.wait(support.LIMIT) == 1
            last = [line for line in server.text().splitlines() if "The store has failed" in line]
            assert len(last) == 1 and "space" in last[0].lower(), server.text()[-2000:]
        subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
        with support.Server(binary, disk / "data") as server:
            lost = set(acknowledged) - set(names(server))
            assert not lost, sorted(lost)[:5]
            register(server, "goes-on")
            server.stop()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def test_dynamic_settings_are_followed_while_it_runs(binary, folder):
    settings = folder / "dynamic.yaml"
    settings.write_text("system.maxRetentionDays:\n- value: 1\n")
    config = folder / "config.yaml"
    config.write_text("dynamicconfig:\n  filebased:\n    pollInterval: 5s\n")
    with support.Server(
        binary, folder / "data", "--config", str(config), "--dynamic-config", str(settings)
    ) as server:

        def ten_days():
            try:
                stub(server).RegisterDomain(
                    domain_api.RegisterDomainRequest(
                        name="ten-days",
                        workflow_execution_retention_period=duration_pb2.Duration(seconds=864000),
                    ),
                    timeout=support.LIMIT,
                )
                return True
            except grpc.RpcError as error:
                assert "RetentionDays is invalid." in error.details(), error
                return False

        assert not ten_days()
        settings.write_text("system.maxRetentionDays:\n- value: 20\n")
        os.utime(settings, (1, 1))  # another time stamp, whatever the clock's grain
        support.wait_until(ten_days, "the new limit")


def make_certificates(folder):
    """An authority, and certificates of it for the server (127.0.0.1) and for a client."""

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    openssl(
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=authority",
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
    )
    for name in ("server", "client"):
        (folder / f"{name}.ext").write_text("subjectAltName=IP:127.0.0.1\n")
        openssl(
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            f"/CN={name}",
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.csr",
        )
        openssl(
            "x509",
            "-req",
            "-in",
            f"{name}.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            f"{name}.ext",
            "-out",
            f"{name}.pem",
        )


def test_tls_serves_those_with_a_certificate_and_nobody_else(binary, folder):
    make_certificates(folder)
    config = folder / "config.yaml"
    config.write_text(f"""services:
  frontend:
    rpc:
      tls:
        enabled: true
        certFile: {folder}/server.pem
        keyFile: {folder}/server.key
        caFiles: [{folder}/ca.pem]
        requireClientAuth: true
""")

    def read(name):
        return (folder / name).read_bytes()

    def list_domains(channel):
        return domain_stub.DomainAPIStub(channel).ListDomains(
            domain_api.ListDomainsRequest(), timeout=10
        )

    with support.Server(binary, folder / "data", "--config", str(config)) as server:
        known = grpc.ssl_channel_credentials(read("ca.pem"), read("client.key"), read("client.pem"))
        assert len(list_domains(grpc.secure_channel(server.grpc, known)).domains) == 3
        for channel in (
            grpc.secure_channel(server.grpc, grpc.ssl_channel_credentials(read("ca.pem"))),
            grpc.insecure_channel(server.grpc),
        ):
            try:
                list_domains(channel)
                raise AssertionError("it was let in")
            except grpc.RpcError as error:
                assert error.code() in (
                    grpc.StatusCode.UNAVAILABLE,
                    grpc.StatusCode.DEADLINE_EXCEEDED,
                ), error
        assert len(list_domains(grpc.secure_channel(server.grpc, known)).domains) == 3
        assert server.stop() == 0
    config.write_text(config.read_text().replace("server.key", "missing.key"))
    code, text = fails_to_start(binary, folder / "data", "--config", str(config))
    assert code == 1 and "missing.key" in text, text


def test_clusters_of_a_group_follow_each_other_over_mutual_tls(binary, folder):
    make_certificates(folder)
    ports = [(support.free_port(), support.free_port()) for _ in range(2)]
    tls = f"""enabled: true, certFile: {folder}/NAME.pem, keyFile: {folder}/NAME.key"""

    def member(number):
        group = "".join(f"""
    cluster{i}:
      initialFailoverVersion: {i}
      rpcAddress: "127.0.0.1:{ports[i][0]}"
      tls: {{{tls.replace("NAME", "client")}, caFile: {folder}/ca.pem}}""" for i in range(2))
        config = folder / f"cluster{number}.yaml"
        config.write_text(f"""services:
  frontend:
    rpc:
      tls:
        {{{tls.replace("NAME", "server")}, caFiles: [{folder}/ca.pem], requireClientAuth: true}}
clusterGroupMetadata:
  failoverVersionIncrement: 10
  primaryClusterName: cluster0
  currentClusterName: cluster{number}
  clusterGroup:{group}
""")
        data = folder / f"data{number}"
        return support.Server(binary, data, "--config", str(config), ports=ports[number])

    def read(name):
        return (folder / name).read_bytes()

    known = grpc.ssl_channel_credentials(read("ca.pem"), read("client.key"), read("client.pem"))

    def secure(server):
        return domain_stub.DomainAPIStub(grpc.secure_channel(server.grpc, known))

    with member(0) as first, member(1) as second:
        secure(first).RegisterDomain(
            domain_api.RegisterDomainRequest(
                name="shared",
                is_global_domain=True,
                workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
            ),
            timeout=support.LIMIT,
        )

        def is_there():
            page = secure(second).ListDomains(domain_api.ListDomainsRequest(), timeout=10)
            found = [domain.name for domain in page.domains]
            return found == [*support.SYSTEM_DOMAINS, "shared"]

        support.wait_until(is_there, "the domain in the other cluster")


support.main(sys.modules[__name__])
