"""A source of entities over https, with an authority of our own: a server whose certificate does
not fit is never believed, whatever it says, and what is wrong with it is seen."""

import http.server
import ssl
import subprocess
import sys
import threading

import support
from cli_support import Cli
from entity_test import DOMAIN, Source, await_region, entity, two_regions


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


class Authority:
    """Signs certificates for servers and clients."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.file, self.key = folder / f"{name}.pem", folder / f"{name}-key.pem"
        openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-days", "2", "-subj", f"/CN={name}", "-keyout", str(self.key)),
            *("-out", str(self.file)),
        )

    def sign(self, name, alternative, days=2):
        """(certificate, key) for those names; days before 0: it has ended."""
        at = lambda end: str(self.folder / f"{self.name}-{name}{end}")
        openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-subj", f"/CN={name}", "-keyout", at("-key.pem"), "-out", at(".csr")),
        )
        with open(at(".ext"), "w") as file:
            file.write(f"subjectAltName={alternative}\n")
        openssl(
            *("x509", "-req", "-in", at(".csr"), "-CA", str(self.file), "-CAkey", str(self.key)),
            *("-CAcreateserial", "-extfile", at(".ext"), "-days", str(days), "-out", at(".pem")),
        )
        return at(".pem"), at("-key.pem")


class Server:
    """Source of entity_test.py behind TLS; its certificate can be changed while it runs."""

    def __init__(self, certificate, clients_of=None):
        self.context = self.context_of(certificate, clients_of)
        outer = self

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def get_request(self):
                connection, address = super().get_request()
                connection.settimeout(30)
                return outer.context.wrap_socket(connection, server_side=True), address

            def handle_error(self, *_):
                pass

        self.listener = Listener(("127.0.0.1", 0), Source)
        self.port = self.listener.server_port
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()

    @staticmethod
    def context_of(certificate, clients_of=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        context.set_alpn_protocols(["http/1.1"])  # as web servers have it
        if clients_of is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients_of.file)
        return context

    def use(self, certificate, clients_of=None):
        self.context = self.context_of(certificate, clients_of)

    def close(self):
        self.listener.shutdown()
        self.listener.server_close()


def await_failure(cli, text):
    """The watcher says so, and its counter rises."""
    support.wait_until(
        lambda: text in cli("admin", "entity", "watchers"), f"the watcher to say '{text}'"
    )


def failures(cluster):
    for line in support.get(cluster.http, "/metrics")[1].splitlines():
        if line.startswith('cadence_entity_source_failures{type="user-location"}'):
            return float(line.split()[-1])
    return 0.0


def watcher_of(server, host, **tls):
    settings = ", ".join(f"{key}: '{value}'" for key, value in tls.items())
    shown = {"watcher": "http", "url": f"https://{host}:{server.port}/where", "wait": "1s"}
    return {**shown, "tls": "{" + settings + "}"} if tls else shown


def test_an_https_source_is_followed_while_its_certificate_fits(binary, folder):
    ours, other = Authority(folder, "ours"), Authority(folder, "other")
    good = ours.sign("good", "DNS:localhost")
    bad = {
        "hostname mismatch": ours.sign("elsewhere", "DNS:elsewhere.example"),
        "unable to get local issuer certificate": other.sign("forged", "DNS:localhost"),
        "certificate has expired": ours.sign("old", "DNS:localhost", days=-1),
    }
    server = Server(good)
    Source.say(ann="us-west")
    watcher = watcher_of(server, "localhost", caFile=ours.file)
    with two_regions(binary, folder, **watcher) as (clusters, _):
        clis = [Cli(binary, cluster.grpc, DOMAIN) for cluster in clusters]
        await_region(clis, "ann", "us-west")
        Source.say(ann="us-east")
        await_region(clis, "ann", "us-east")
        place = "us-east"
        for why, certificate in bad.items():
            server.use(certificate)
            await_failure(clis[0], why)  # when the poll that was under way has ended
            Source.say(ann="us-west" if place == "us-east" else "us-east")  # is not believed
            before = failures(clusters[0])
            support.wait_until(lambda: failures(clusters[0]) > before + 1, "two more looks")
            assert entity(clis[0], "ann")["region"] == place, why
            server.use(good)  # repaired: it is followed again
            place = "us-west" if place == "us-east" else "us-east"
            await_region(clis, "ann", place)
            assert why not in clis[0]("admin", "entity", "watchers")
    server.close()


def test_an_https_source_may_want_a_certificate(binary, folder):
    ours, other = Authority(folder, "ours"), Authority(folder, "other")
    server = Server(ours.sign("server", "IP:127.0.0.1"), clients_of=ours)
    certificate, key = folder / "client.pem", folder / "client-key.pem"

    def show(made):
        for source, target in zip(made, (certificate, key)):
            target.with_suffix(".new").write_bytes(open(source, "rb").read())
            target.with_suffix(".new").replace(target)

    show(other.sign("stranger", "DNS:client"))
    Source.say(ann="us-west")
    watcher = watcher_of(server, "127.0.0.1", caFile=ours.file, certFile=certificate, keyFile=key)
    with two_regions(binary, folder, **watcher) as (clusters, _):
        clis = [Cli(binary, cluster.grpc, DOMAIN) for cluster in clusters]
        await_failure(clis[0], "failing")
        assert entity(clis[0], "ann") is None
        show(ours.sign("client", "DNS:client"))  # new files are read without a restart
        await_region(clis, "ann", "us-west")
    server.close()


def test_without_a_file_the_authorities_of_the_system_vouch(binary, folder):
    ours = Authority(folder, "ours")
    server = Server(ours.sign("server", "DNS:localhost"))
    Source.say(ann="us-west")
    with two_regions(binary, folder, **watcher_of(server, "localhost")) as (clusters, _):
        cli = Cli(binary, clusters[0].grpc, DOMAIN)
        await_failure(cli, "unable to get local issuer certificate")  # it does not know ours
        assert entity(cli, "ann") is None
    server.close()
    server = Server(ours.sign("server2", "DNS:other.example"))
    place = folder / "no-such-file.pem"
    watcher = watcher_of(server, "localhost", caFile=place, serverName="other.example")
    again = folder / "again"
    again.mkdir()
    with two_regions(binary, again, **watcher) as (clusters, _):
        clis = [Cli(binary, cluster.grpc, DOMAIN) for cluster in clusters]
        await_failure(clis[0], "no-such-file.pem")
        place.write_bytes(ours.file.read_bytes())  # it comes later, and is found
        await_region(clis, "ann", "us-west")  # the name is proven, though the URL has another
    server.close()


if __name__ == "__main__":
    sys.exit(support.main(sys.modules[__name__]))
