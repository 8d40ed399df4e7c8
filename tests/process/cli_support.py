"""What the tests of the command line share: running it, a domain, and the worker that serves it."""

import asyncio
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
from datetime import timedelta
from typing import Any

from cadence import workflow
from cadence.client import Client
from cadence.worker import Registry, Worker

import support

DOMAIN, LIST = "orders", "mail"
HOUR = timedelta(hours=1)
registry = Registry()
place = pathlib.Path(os.environ.get("CLI_TEST_FOLDER", "/nowhere"))  # of the worker


@registry.activity()
async def pay(_name: str) -> str:
    return "paid"


@registry.activity()
async def linger() -> None:
    """Stays in the worker's hands until it is told to go."""
    (place / "entered").touch()
    while not (place / "leave").exists():
        await asyncio.sleep(0.01)


@registry.workflow(name="greet")
class Greet:
    """Waits for a signal and says its name; is asked meanwhile."""

    def __init__(self):
        self.paid = []

    @workflow.run
    async def run(self, name: str = "nobody") -> str:
        await workflow.wait_condition(lambda: "done" in self.paid)
        return f"hello {name}"

    @workflow.signal(name="paid")
    def on_paid(self, amount: Any) -> None:
        self.paid.append(amount)

    @workflow.query(name="status")
    def status(self, _number: int = 0, _flag: bool = False) -> dict:
        return {"paid": len(self.paid)}

    @workflow.query(name="__stack_trace")
    def stack(self) -> str:
        return "greet\n  waits for a signal"


@registry.workflow(name="buy")
class Buy:
    """Two activities that a worker takes and does not end."""

    @workflow.run
    async def run(self) -> str:
        calls = [linger.with_options(schedule_to_close_timeout=HOUR).execute() for _ in range(2)]
        await asyncio.gather(*calls)
        return "bought"


@registry.workflow(name="quick")
class Quick:
    @workflow.run
    async def run(self, name: str = "nobody") -> str:
        return await pay.with_options(schedule_to_close_timeout=HOUR).execute(name)


@registry.workflow(name="sleep")
class Sleep:
    """Sleeps so many days, one after the other."""

    @workflow.run
    async def run(self, days: int) -> int:
        for _ in range(days):
            await workflow.sleep(timedelta(days=1))
        return days


@registry.workflow(name="linger")
class Linger:
    """An activity beside a timer of a day."""

    @workflow.run
    async def run(self) -> str:
        await linger.with_options(schedule_to_close_timeout=30 * 24 * HOUR).execute()
        return "done"


async def serve(address, domain, task_list):
    async with Client(domain=domain, target=address) as client:
        async with Worker(client, task_list, registry):
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.read)  # until its caller closes the pipe


@contextlib.contextmanager
def worker(address, folder=None, domain=DOMAIN, task_list=LIST):
    """The official Python worker, a process of its own."""
    process = subprocess.Popen(
        [sys.executable, __file__, address, domain, task_list],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "CLI_TEST_FOLDER": str(folder)},
    )
    try:
        assert process.stdout.readline() == b"ready\n", "no worker"
        yield process
    finally:
        process.stdin.close()
        process.wait(support.LIMIT)
        process.stdout.close()


class Cli:
    """`cadenza` with an address and a domain from the environment."""

    def __init__(self, binary, address, domain=DOMAIN):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("CADENCE")}
        self.environment = {
            **clean,
            "CADENCE_CLI_ADDRESS": address,
            "CADENCE_CLI_DOMAIN": domain,
            "USER": "ann",
        }
        self.binary = binary

    def run(self, *words, **options):
        """(exit code, standard output, standard error)"""
        return support.run(self.binary, *words, env=self.environment, **options)

    def __call__(self, *words, code=0):
        done = self.run(*words)
        assert done[0] == code, (words, done)
        return done[1] if code == 0 else done[2]

    def json(self, *words):
        return json.loads(self(*words, "--format", "json"))

    def events(self, workflow_id):
        """The types of the events, in order."""
        return [event["eventType"] for event in self.json("workflow", "show", "-w", workflow_id)]

    def wait_event(self, workflow_id, kind):
        support.wait_until(lambda: kind in self.events(workflow_id), f"{kind} of {workflow_id}")

    def start(self, workflow_id, kind, *flags):
        out = self(
            *("workflow", "start", "-w", workflow_id, "--tl", LIST, "--wt", kind),
            *("--execution_timeout", "600", *flags),
        )
        return re.fullmatch(rf"Started Workflow Id: {workflow_id}, run Id: (\S{{36}})\n", out)[1]


class Dev:
    """`cadenza dev` on free ports."""

    def __init__(self, binary, *flags):
        self.words = [binary, "dev", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", *flags]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, text=True)
        self.lines = []
        while not self.lines or "Ctrl-C" not in self.lines[-1]:
            line = self.process.stdout.readline()
            assert line, (self.lines, self.process.wait())
            self.lines.append(line)
        text = "".join(self.lines)
        self.grpc = re.search(r"gRPC +(\S+)", text)[1]
        self.log = re.search(r"log +(\S+)", text)[1]
        return self

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(support.LIMIT)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        self.process.stdout.close()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
