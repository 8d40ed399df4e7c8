"""How servers prove who they are: tokens between clusters, certificates that are renewed."""

import contextlib
import ssl
import subprocess
import sys

import grpc
from cadence.api.v1 import (
    service_domain_pb2 as domain_api,
    service_domain_pb2_grpc as domain_stub,
    service_workflow_pb2_grpc as workflow_stub,
)

import authorize_test
import group_test
import replication_test
import support

PROVIDER = (
    "      authorizationProvider: {{enable: true, type: OAuthAuthorization, privateKey: {key}}}\n"
)
REFUSES = "A cluster refuses the calls of this one"

# ---- clusters that want tokens ----


class Shows(grpc.UnaryUnaryClientInterceptor):
    """Adds a token to each call."""

    def __init__(self, token):
        self.token = token

    def intercept_unary_unary(self, continuation, details, request):
        details = details._replace(metadata=[("cadence-authorization", self.token)])
        return continuation(details, request)


def channel_of(cluster, token):
    return grpc.intercept_channel(grpc.insecure_channel(cluster.grpc), Shows(token))


def make_side(cluster, token):
    side = replication_test.Side(cluster)
    side.workflows = workflow_stub.WorkflowAPIStub(channel_of(cluster, token))
    return side


def make_clusters(binary, folder, keys):
    """Two clusters that want tokens; `keys` are those that each signs its own calls with."""
    private = authorize_test.make_keys(folder)
    ports = [(support.free_port(), support.free_port()) for _ in range(2)]
    clusters = []
    for number in range(2):
        cluster = group_test.Cluster(binary, folder, number, ports)
        config = folder / f"{cluster.name}.yaml"
        text = config.read_text() + authorize_test.CONFIG.format(folder=folder)
        if keys[number]:
            provider = PROVIDER.format(key=folder / keys[number])
            text = text.replace(
                "      rpcTransport: grpc\n", "      rpcTransport: grpc\n" + provider
            )
        config.write_text(text)
        clusters.append(cluster)
    return private, clusters


@contextlib.contextmanager
def two_clusters(binary, folder, keys=("private.pem", "private.pem")):
    private, clusters = make_clusters(binary, folder, keys)
    admin = authorize_test.make_token(private, Admin=True)
    with contextlib.ExitStack() as stack:
        for cluster in clusters:
            stack.enter_context(cluster)
            cluster.api = domain_stub.DomainAPIStub(channel_of(cluster, admin))
        yield private, admin, clusters


@support.proves("J-025")
def test_clusters_that_want_tokens_follow_each_other(binary, folder):
    domain = replication_test.DOMAIN
    with two_clusters(binary, folder) as (private, admin, clusters):
        group_test.register(clusters, domain, data={"WRITE_GROUPS": "writers"})
        group_test.until_same(clusters, domain)
        sides = [make_side(cluster, admin) for cluster in clusters]
        sides[0].start("w")
        replication_test.until_same(sides, "w")
        # What is sent on to the active cluster has the caller's own token.
        writer = authorize_test.make_token(private, Groups="writers")
        make_side(clusters[1], writer).signal("w", "hello")
        events = replication_test.until_same(sides, "w")
        support.wait_until(
            lambda: "workflow_execution_signaled"
            in replication_test.kinds(sides[1].history("w") or []),
            "the signal",
        )
        assert len(events) >= 2, events
        assert not any(REFUSES in cluster.text() for cluster in clusters)


@support.proves("J-025")
def test_a_cluster_that_shows_no_token_is_refused_and_says_so(binary, folder):
    domain = replication_test.DOMAIN
    with two_clusters(binary, folder, keys=("private.pem", None)) as (_, _, clusters):
        group_test.register(clusters, domain)

        def refusals():
            return [line for line in clusters[1].lines() if REFUSES in line["msg"]]

        # once for the domains and once for the runs, however often they are tried again
        support.wait_until(lambda: len(refusals()) == 2, "the log to say so")
        for line in refusals():
            assert line["source-cluster"] == "cluster0", line
            assert "Request unauthorized" in line["error"], line
        assert clusters[1].describe(domain) is None
        assert len(refusals()) == 2
        assert REFUSES not in clusters[0].text()


@support.proves("J-025")
def test_clusters_go_on_with_other_keys_without_a_restart(binary, folder):
    domain = replication_test.DOMAIN
    with two_clusters(binary, folder) as (_, admin, clusters):
        group_test.register(clusters, domain)
        group_test.until_same(clusters, domain)
        private = authorize_test.make_keys(folder)  # in the same files
        for cluster in clusters:
            support.wait_until(
                lambda: "The keys of tokens were read again" in cluster.text()
                and "The key for tokens was read again" in cluster.text(),
                f"{cluster.name} to read the new keys",
            )
        with contextlib.suppress(grpc.RpcError):
            make_side(clusters[0], admin).start("old")
            raise AssertionError("a token of the old key is taken")
        newer = authorize_test.make_token(private, Admin=True)
        sides = [make_side(cluster, newer) for cluster in clusters]
        sides[0].start("w")
        replication_test.until_same(sides, "w")


def test_a_server_does_not_start_with_a_key_that_cannot_sign(binary, folder):
    _, clusters = make_clusters(binary, folder, keys=("public.pem", None))
    clusters[0].launch()
    assert clusters[0].process.wait(support.LIMIT) != 0
    assert "clusterGroup.cluster1.authorizationProvider.privateKey" in clusters[0].text()
    assert "public.pem is not an RSA private key in PEM format" in clusters[0].text()


# ---- certificates ----


TLS = """
services:
  frontend:
    rpc:
      tls: {{enabled: true, certFile: {folder}/certificate.pem, keyFile: {folder}/key.pem}}
"""
RENEWED = "Certificates were read again; new connections use them."
UNUSABLE = "New certificates cannot be used; the old ones stay."


def make_certificate(folder, name):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        + ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
        + ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")],
        check=True,
        capture_output=True,
    )
    return (folder / "certificate.pem").read_text()


def served(server):
    """The certificate that a new connection is shown."""
    return ssl.get_server_certificate(("127.0.0.1", server.ports[0]))


def count(server, message):
    return sum(line["msg"] == message for line in server.lines())


def test_new_certificates_are_served_without_a_restart(binary, folder):
    first = make_certificate(folder, "first")
    config = folder / "config.yaml"
    config.write_text(TLS.format(folder=folder))
    with support.Server(binary, folder / "data", "--config", str(config)) as server:
        assert served(server) == first
        trusted = grpc.ssl_channel_credentials(first.encode())
        old = domain_stub.DomainAPIStub(grpc.secure_channel(server.grpc, trusted))
        ask = domain_api.DescribeDomainRequest(name="cadence-system")
        old.DescribeDomain(ask, timeout=support.LIMIT)
        second = make_certificate(folder, "second")
        support.wait_until(lambda: served(server) == second, "the second certificate")
        assert count(server, RENEWED) == 1
        old.DescribeDomain(ask, timeout=support.LIMIT)  # on the connection it has
        (folder / "key.pem").write_text("no key")
        support.wait_until(lambda: count(server, UNUSABLE) == 1, "the log to say so")
        line = next(line for line in server.lines() if line["msg"] == UNUSABLE)
        assert "key.pem" in line["error"], line
        assert served(server) == second
        third = make_certificate(folder, "third")
        support.wait_until(lambda: served(server) == third, "the third certificate")
        assert count(server, UNUSABLE) == 1 and count(server, RENEWED) == 2


# ---- clusters that speak TLS ----

MUTUAL = """
services:
  frontend:
    rpc:
      tls:
        enabled: true
        certFile: {folder}/leaf.pem
        keyFile: {folder}/leaf-key.pem
        caFiles: [{folder}/authority.pem]
        requireClientAuth: true
"""
TOWARDS = """      tls:
        enabled: true
        certFile: {folder}/leaf.pem
        keyFile: {folder}/leaf-key.pem
        caFile: {folder}/authority.pem
        serverName: {name}
        enableHostVerification: {verifies}
"""
NAME = "cadenza.test"  # of the leaf, which has no address


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def make_authority(folder):
    """An authority and a certificate that it vouches for."""
    at = lambda name: str(folder / name)
    (folder / "names").write_text(f"subjectAltName=DNS:{NAME}\n")
    new = ["req", "-newkey", "rsa:2048", "-nodes"]
    openssl(
        *(*new, "-x509", "-days", "2", "-subj", "/CN=authority"),
        *("-keyout", at("authority-key.pem"), "-out", at("authority.pem")),
    )
    openssl(*new, "-subj", f"/CN={NAME}", "-keyout", at("leaf-key.pem"), "-out", at("leaf.csr"))
    openssl(
        *("x509", "-req", "-in", at("leaf.csr"), "-days", "2", "-extfile", at("names")),
        *("-CA", at("authority.pem"), "-CAkey", at("authority-key.pem"), "-CAcreateserial"),
        *("-out", at("leaf.pem")),
    )


def channel_with(cluster, folder, shows_certificate):
    read = lambda name: (folder / name).read_bytes()
    pair = [read("leaf-key.pem"), read("leaf.pem")] if shows_certificate else [None, None]
    credentials = grpc.ssl_channel_credentials(read("authority.pem"), *pair)
    options = [("grpc.ssl_target_name_override", NAME)]
    return grpc.secure_channel(cluster.grpc, credentials, options)


@contextlib.contextmanager
def mutual_clusters(binary, folder, names, verifies="true"):
    """Two clusters that want certificates; `names`: what each wants the other's to say."""
    make_authority(folder)
    ports = [(support.free_port(), support.free_port()) for _ in range(2)]
    with contextlib.ExitStack() as stack:
        clusters = []
        for number in range(2):
            cluster = group_test.Cluster(binary, folder, number, ports)
            config = folder / f"{cluster.name}.yaml"
            way = TOWARDS.format(folder=folder, name=names[number], verifies=verifies)
            text = config.read_text().replace("rpcTransport: grpc\n", "rpcTransport: grpc\n" + way)
            config.write_text(text + MUTUAL.format(folder=folder))
            clusters.append(stack.enter_context(cluster))
            cluster.api = domain_stub.DomainAPIStub(channel_with(cluster, folder, True))
        yield clusters


@support.proves("J-026")
def test_clusters_that_want_certificates_follow_each_other(binary, folder):
    with mutual_clusters(binary, folder, names=(NAME, NAME)) as clusters:
        group_test.register(clusters, "orders")
        group_test.until_same(clusters, "orders")
        stranger = domain_stub.DomainAPIStub(channel_with(clusters[0], folder, False))
        try:
            stranger.DescribeDomain(domain_api.DescribeDomainRequest(name="orders"), timeout=5)
            raise AssertionError("a client without a certificate was let in")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE, error


@support.proves("J-026")
def test_a_cluster_with_another_name_is_followed_only_where_names_are_not_checked(binary, folder):
    with mutual_clusters(binary, folder, names=(NAME, "other.test")) as clusters:
        group_test.register(clusters, "orders")
        support.wait_until(lambda: "hostname mismatch" in clusters[1].text(), "the log to say so")
        assert clusters[1].describe("orders") is None
        assert "hostname mismatch" not in clusters[0].text()
    other = folder / "other"
    other.mkdir()
    names = (NAME, "other.test")
    with mutual_clusters(binary, other, names, verifies="false") as clusters:
        group_test.register(clusters, "orders")
        group_test.until_same(clusters, "orders")


if __name__ == "__main__":
    support.main(sys.modules[__name__])
