"""What the tests of the real binary share: starting and stopping servers, counting results.

A server listens on loopback, on free ports, in a folder of its own, and is stopped by its pid."""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

CADENCE = str(pathlib.Path(__file__).resolve().parents[2] / "build" / "clients" / "cadence")
LIMIT = 60  # seconds to wait for a condition; generous, never a measure of speed


def wait_until(condition, what, limit=LIMIT):
    """Waits for a condition; says what was waited for when it does not come."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit} s for {what}")
        time.sleep(0.01)


def free_port():
    """One that nobody listens at, below those that connections are given (from 32768 on)."""
    while True:
        port = random.randrange(10000, 31000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def is_free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def get(address, path):
    """(status, body) of GET http://address/path; None when nobody answers."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


# Domains that are there from the first start.
SYSTEM_DOMAINS = ("cadence-batcher", "cadence-shadower", "cadence-system")


class Server:
    """One cadenza server process, with several loops however few cores there are."""

    def __init__(self, binary, data, *flags, ports=None):
        grpc_port, http_port = ports or (free_port(), free_port())
        self.binary, self.data, self.flags = binary, data, flags
        self.ports = (grpc_port, http_port)
        self.grpc, self.http = f"127.0.0.1:{grpc_port}", f"127.0.0.1:{http_port}"
        self.process = None

    def launch(self):
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [
                self.binary,
                "server",
                "--data",
                str(self.data),
                "--grpc",
                self.grpc,
                "--http",
                self.http,
                "--loops",
                "2",
                *self.flags,
            ],
            stdout=self.output,
            stderr=subprocess.STDOUT,
        )
        return self

    def start(self):
        self.launch()
        wait_until(self.is_ready, "the server to be ready")
        return self

    def is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with {self.process.returncode}: {self.text()}")
        answer = get(self.http, "/healthz")
        return answer is not None and answer[0] == 200

    def text(self):
        self.output.seek(0)
        return self.output.read().decode(errors="replace")

    def lines(self):
        """The log, one dict per line; every line must be JSON."""
        return [json.loads(line) for line in self.text().splitlines()]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT)

    def kill(self):
        self.process.kill()
        self.process.wait(LIMIT)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()


def run(binary, *arguments, **options):
    """Runs a command to its end; (exit code, standard output, standard error)."""
    done = subprocess.run(
        [binary, *arguments], capture_output=True, text=True, timeout=LIMIT, **options
    )
    return done.returncode, done.stdout, done.stderr


def cadence(server, domain, *words):
    """Runs the real `cadence` command line against a server."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CADENCE")}
    return run(
        CADENCE,
        "--transport",
        "grpc",
        "--address",
        server.grpc,
        "--domain",
        domain,
        *words,
        env=environment,
    )


def proves(*ids):
    """Names the lines of tests/catalogue.txt that a test proves."""

    def mark(test):
        test.ids = ids
        return test

    return mark


def main(module):
    """Runs every test_*(binary, folder) of a module in a folder of its own. argv: binary [part]."""
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    passed = failed = 0
    for name, test in list(vars(module).items()):
        if not name.startswith("test_") or wanted not in name:
            continue
        title = name[len("test_") :].replace("_", " ")
        if hasattr(test, "ids"):
            title += f" [{' '.join(test.ids)}]"
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(binary, pathlib.Path(folder))
                print(f"ok {title}", flush=True)
                passed += 1
            except Exception:
                traceback.print_exc(file=sys.stdout)
                print(f"FAILED {title}", flush=True)
                failed += 1
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)
