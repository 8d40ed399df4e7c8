"""Requests that no honest client sends: every call about runs and tasks, with its fields at their
extremes, left out, doubled, or cut in the middle of their bytes.

The server must live, answer each of them with a status that says something, and still run a
workflow afterwards. The requests follow from a seed: one is fixed, the other one is that of the
commit (CADENZA_SEED), so that each commit tries something else and a failure can be had again."""

import json
import os
import random
import sys
import threading

import grpc
from cadence.api.v1 import (
    decision_pb2,
    service_domain_pb2 as domain_api,
    service_worker_pb2 as worker_api,
    service_workflow_pb2 as workflow_api,
)
from google.protobuf import duration_pb2

import support

CALLS = 1500
THREADS = 24
SERVICE = "/uber.cadence.api.v1."
DOMAINS = ("orders", "other")
LISTS = ("list-a", "list-b")
WORKFLOWS = [f"wf-{i}" for i in range(12)]
NUMBERS = (0, 1, -1, 2, 7, 2**31 - 1, -(2**31), 2**31, 2**32 + 5, 2**53, 2**63 - 1, -(2**63))
TEXTS = ("", "x", "a/b", "\x00", "a\x00b", "é" * 5, "%s%n", "L" * 1001, "M" * 70000, "{}", "-")
SECONDS = (0, 1, -1, 60, 2**31 - 1, 2**31, -(2**31) - 1, 315576000000, 2**62, 2**63 - 1, -(2**63))
NANOS = (0, 1, -1, 999999999, 1000000000, 2**31 - 1, -(2**31))
FLOATS = (0.0, 1.0, -1.0, 0.5, 1e308, -1e308, float("inf"), float("nan"))
# Fields that an honest request seldom has: they keep everything that follows from happening.
SELDOM = (
    "delay_start",
    "jitter_start",
    "first_run_at",
    "backoff_start_interval",
    "maximum_interval",
    "active_cluster_selection_policy",
    "sticky_attributes",
    "request_local_dispatch",
)
OFTEN = ("StartWorkflowExecution", "SignalWorkflowExecution", "PollForDecisionTask") * 4
SECONDS_OF = {  # that a call may take: those that wait for something wait in vain for the most part
    "PollForDecisionTask": 2.1,
    "PollForActivityTask": 2.1,
    "GetWorkflowExecutionHistory": 0.7,
}
ANSWERS = {
    "PollForDecisionTask": ("RespondDecisionTaskCompleted",) * 7 + ("RespondDecisionTaskFailed",),
    "PollForActivityTask": (
        "RespondActivityTaskCompleted",
        "RespondActivityTaskFailed",
        "RespondActivityTaskCanceled",
        "RecordActivityTaskHeartbeat",
    ),
}
# What a server may say to a client that is wrong, or too early, or too late.
CLEAR = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
}
# Requests that Cadence itself answers with an internal error, and so do we.
INTERNAL = ("Unable to add ActivityTaskCanceled event to history.",)

METHODS = {
    "StartWorkflowExecution": "WorkflowAPI",
    "SignalWorkflowExecution": "WorkflowAPI",
    "SignalWithStartWorkflowExecution": "WorkflowAPI",
    "RequestCancelWorkflowExecution": "WorkflowAPI",
    "TerminateWorkflowExecution": "WorkflowAPI",
    "RestartWorkflowExecution": "WorkflowAPI",
    "DescribeWorkflowExecution": "WorkflowAPI",
    "GetWorkflowExecutionHistory": "WorkflowAPI",
    "DescribeTaskList": "WorkflowAPI",
    "PollForDecisionTask": "WorkerAPI",
    "PollForActivityTask": "WorkerAPI",
    "RespondDecisionTaskCompleted": "WorkerAPI",
    "RespondDecisionTaskFailed": "WorkerAPI",
    "ResetStickyTaskList": "WorkerAPI",
    "RespondActivityTaskCompleted": "WorkerAPI",
    "RespondActivityTaskCompletedByID": "WorkerAPI",
    "RespondActivityTaskFailed": "WorkerAPI",
    "RespondActivityTaskFailedByID": "WorkerAPI",
    "RespondActivityTaskCanceled": "WorkerAPI",
    "RespondActivityTaskCanceledByID": "WorkerAPI",
    "RecordActivityTaskHeartbeat": "WorkerAPI",
    "RecordActivityTaskHeartbeatByID": "WorkerAPI",
}


def module_of(method):
    return workflow_api if METHODS[method] == "WorkflowAPI" else worker_api


# ---- filling a message: honest values where they are known, else anything ----


class Filler:
    """Makes messages by their descriptors. `malice` is how often a field is not what it should."""

    def __init__(self, chance, tokens):
        self.chance, self.tokens = chance, tokens

    def pick(self, values):
        return values[self.chance.randrange(len(values))]

    def text(self, name):
        known = {
            "domain": DOMAINS,
            "name": LISTS,
            "base_name": LISTS,
            "workflow_id": WORKFLOWS,
            "run_id": [""] * 40 + self.tokens.runs,
            "request_id": [f"{i:08x}-0000-4000-8000-000000000000" for i in range(20)],
            "activity_id": ("one", "two", "three"),
            "timer_id": ("first", "second"),
            "marker_name": ("marker",),
            "signal_name": ("signal",),
            "identity": ("somebody",),
            "reason": ("because",),
            "first_execution_run_id": [""],
            "cron_schedule": [""],
        }
        return self.pick(known.get(name, ("x", "y", "")))

    def bytes(self, name):
        if name == "task_token":
            return self.tokens.task(self.chance)
        if name == "next_page_token":
            return self.tokens.page(self.chance)
        return self.chance.randbytes(self.pick((0, 1, 10, 3000)))

    def scalar(self, field, is_bad):
        kind = field.cpp_type
        if kind == field.CPPTYPE_STRING:
            is_bytes = field.type == field.TYPE_BYTES
            if is_bytes:
                return self.chance.randbytes(9) if is_bad else self.bytes(field.name)
            return self.pick(TEXTS) if is_bad else self.text(field.name)
        if kind == field.CPPTYPE_BOOL:
            return self.chance.random() < 0.5
        if kind == field.CPPTYPE_ENUM:
            values = [value.number for value in field.enum_type.values]
            return self.pick((-1, 99, 2**31 - 1, -(2**31))) if is_bad else self.pick(values)
        if kind in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
            return self.pick(FLOATS) if is_bad else 2.0
        fitting = [n for n in NUMBERS if fits(field, n)]
        return self.pick(fitting) if is_bad else self.chance.randrange(20)

    def fill(self, message, malice, depth=0):
        kind = message.DESCRIPTOR.full_name
        if kind in ("google.protobuf.Duration", "google.protobuf.Timestamp"):
            is_bad = self.chance.random() < malice
            message.seconds = self.pick(SECONDS) if is_bad else 100 + self.chance.randrange(900)
            message.nanos = self.pick(NANOS) if is_bad else 0
            return message
        chosen = {
            oneof.name: self.pick([field.name for field in oneof.fields])
            for oneof in message.DESCRIPTOR.oneofs
        }
        for field in message.DESCRIPTOR.fields:
            if field.containing_oneof and chosen[field.containing_oneof.name] != field.name:
                continue
            is_bad = self.chance.random() < malice
            if is_bad and self.chance.random() < 0.4:
                continue  # left out
            if field.name in SELDOM and self.chance.random() < 0.95:
                continue
            self.fill_field(message, field, malice, is_bad, depth)
        return message

    def fill_field(self, message, field, malice, is_bad, depth):
        if field.is_repeated if hasattr(field, "is_repeated") else field.label == 3:
            self.fill_repeated(message, field, malice, is_bad, depth)
        elif field.cpp_type == field.CPPTYPE_MESSAGE:
            part = getattr(message, field.name)
            part.SetInParent()
            if depth < 6 and not (is_bad and self.chance.random() < 0.5):
                self.fill(part, malice, depth + 1)
        else:
            setattr(message, field.name, self.scalar(field, is_bad))

    def fill_repeated(self, message, field, malice, is_bad, depth):
        if depth > 4:
            return
        count = self.pick((1, 2, 40)) if is_bad else self.chance.randrange(4)
        values = getattr(message, field.name)
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            for _ in range(count):
                key = self.scalar(entry.fields_by_name["key"], is_bad)
                value = entry.fields_by_name["value"]
                if value.cpp_type == value.CPPTYPE_MESSAGE:
                    self.fill(values[key], malice, depth + 1)
                else:
                    values[key] = self.scalar(value, is_bad)
        elif field.cpp_type == field.CPPTYPE_MESSAGE:
            for _ in range(count):
                self.fill(values.add(), malice, depth + 1)
        else:
            values.extend(self.scalar(field, is_bad) for _ in range(count))


def fits(field, number):
    is_small = field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32)
    is_unsigned = field.cpp_type in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64)
    low = 0 if is_unsigned else -(2**31) if is_small else -(2**63)
    high = (2**32 if is_small else 2**64) if is_unsigned else 2**31 if is_small else 2**63
    return low <= number < high


def break_bytes(chance, body):
    """Bytes that are no longer what they were."""
    body = bytearray(body)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(body) + 1)
        what = chance.randrange(6)
        if what == 0 and body:
            body[at % len(body)] ^= 1 << chance.randrange(8)
        elif what == 1:
            del body[at : at + chance.randrange(1, 9)]
        elif what == 2:
            body[at:at] = body[at : at + 30]  # a field twice
        elif what == 3:
            body += b"\xfa\x7f\x03abc"  # a field that nobody knows
        elif what == 4:
            body[at:at] = chance.randbytes(3)
        else:
            body = body[:at]
    return bytes(body)


# ---- what the server gave out, to be sent back changed ----


class Tokens:
    def __init__(self):
        self.tasks, self.pages, self.runs = [], [], []
        self.lock = threading.Lock()

    def keep(self, place, value):
        with self.lock:
            place.append(value)
            del place[:-40]

    def task(self, chance):
        return self.changed(chance, self.tasks)

    def page(self, chance):
        return b"" if chance.random() < 0.4 else self.changed(chance, self.pages)

    def changed(self, chance, place):
        with self.lock:
            token = chance.choice(place[-5:]) if place else b"{}"
        if chance.random() < 0.8:
            return token
        try:
            members = json.loads(token)
        except ValueError:
            return break_bytes(chance, token)
        if not members or chance.random() < 0.2:
            return break_bytes(chance, token)
        name = chance.choice(sorted(members))
        others = (*NUMBERS, *TEXTS, None, True, [], {}, 1.5, "AAAA", "///////////w==", 10**30)
        members[name] = chance.choice(others)
        return json.dumps(members).encode()


class Door:
    """Calls by name, bytes in and bytes out."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(
            address,
            [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)],
        )
        self.calls = {
            method: self.channel.unary_unary(f"{SERVICE}{service}/{method}")
            for method, service in METHODS.items()
        }

    def call(self, method, body, seconds):
        """(status, text, answer)"""
        try:
            return grpc.StatusCode.OK, "", self.calls[method](body, timeout=seconds)
        except grpc.RpcError as error:
            return error.code(), error.details() or "", b""

    def ask(self, method, request, seconds=10):
        status, text, answer = self.call(method, request.SerializeToString(), seconds)
        assert status == grpc.StatusCode.OK, (method, status, text)
        return getattr(module_of(method), f"{method}Response").FromString(answer)


def register(address):
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(f"{SERVICE}DomainAPI/RegisterDomain")
        for name in DOMAINS:
            request = domain_api.RegisterDomainRequest(
                name=name,
                workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
            )
            call(request.SerializeToString(), timeout=10)


# ---- one thread of bad manners ----


class Rogue(threading.Thread):
    def __init__(self, door, tokens, seed, count):
        super().__init__(daemon=True)
        self.door, self.tokens, self.count = door, tokens, count
        self.chance = random.Random(seed)
        self.filler = Filler(self.chance, tokens)
        self.statuses, self.unclear = {}, []

    def request(self, method):
        request = getattr(module_of(method), f"{method}Request")()
        malice = self.chance.choice((0.0, 0.0, 0.03, 0.1, 0.5))
        self.filler.fill(request, malice)
        if method == "RespondDecisionTaskCompleted" and self.chance.random() < 0.8:
            stay_open(request)
        body = request.SerializeToString()
        return break_bytes(self.chance, body) if self.chance.random() < 0.2 else body

    def learn(self, method, answer):
        response = getattr(module_of(method), f"{method}Response").FromString(answer)
        if "Poll" in method and response.task_token:
            self.tokens.keep(self.tokens.tasks, response.task_token)
            self.tokens.keep(self.tokens.runs, response.workflow_execution.run_id)
            self.follow(method, response.task_token)
        elif method == "GetWorkflowExecutionHistory" and response.next_page_token:
            self.tokens.keep(self.tokens.pages, response.next_page_token)
        elif method == "StartWorkflowExecution":
            self.tokens.keep(self.tokens.runs, response.run_id)

    def once(self):
        method = self.chance.choice([*METHODS, *OFTEN])
        self.send(method, self.request(method))

    def follow(self, method, token):
        """Answers the task that came, so that the list of decisions is looked at."""
        answer = self.chance.choice(ANSWERS[method])
        request = getattr(module_of(answer), f"{answer}Request")
        try:
            request = request.FromString(self.request(answer))
        except Exception:  # its bytes were broken
            return
        request.task_token = token
        self.send(answer, request.SerializeToString())

    def send(self, method, body):
        is_long = "Poll" in method or "History" in method
        status, text, answer = self.door.call(method, body, SECONDS_OF.get(method, 10))
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if status not in CLEAR and not text.endswith(INTERNAL):
            self.unclear.append((method, status, text, body[:300]))
        elif status == grpc.StatusCode.OK and (is_long or "Start" in method):
            self.learn(method, answer)

    def run(self):
        for _ in range(self.count):
            self.once()


def stay_open(request):
    """Without its closing decisions, and those that are not known, the run goes on."""
    closing = ("complete", "fail_w", "cancel_w", "continue_as_new")
    later = ("start_child", "signal_external", "request_cancel_external", "unset")
    for decision in list(request.decisions):
        if (decision.WhichOneof("attributes") or "unset").startswith(closing + later):
            request.decisions.remove(decision)


def honest_run(door, name):
    """A workflow from start to end, after all that."""
    execution = {"workflow_id": name}
    door.ask(
        "StartWorkflowExecution",
        workflow_api.StartWorkflowExecutionRequest(
            domain="orders",
            workflow_id=name,
            request_id="0d9f4f10-0000-4000-8000-00000000ffff",
            workflow_type={"name": "type"},
            task_list={"name": f"list-of-{name}"},
            execution_start_to_close_timeout=duration_pb2.Duration(seconds=60),
            task_start_to_close_timeout=duration_pb2.Duration(seconds=10),
        ),
    )
    task = door.ask(
        "PollForDecisionTask",
        worker_api.PollForDecisionTaskRequest(
            domain="orders", task_list={"name": f"list-of-{name}"}, identity="honest"
        ),
        seconds=30,
    )
    assert task.task_token, "no task came"
    done = decision_pb2.Decision()
    done.complete_workflow_execution_decision_attributes.SetInParent()
    door.ask(
        "RespondDecisionTaskCompleted",
        worker_api.RespondDecisionTaskCompletedRequest(
            task_token=task.task_token, decisions=[done], identity="honest"
        ),
    )
    history = door.ask(
        "GetWorkflowExecutionHistory",
        workflow_api.GetWorkflowExecutionHistoryRequest(
            domain="orders", workflow_execution=execution
        ),
    ).history
    kinds = [event.WhichOneof("attributes") for event in history.events]
    assert kinds[-1] == "workflow_execution_completed_event_attributes", kinds
    assert len(kinds) == 5, kinds


def storm(server, seed, calls):
    door, tokens = Door(server.grpc), Tokens()
    rogues = [Rogue(door, tokens, f"{seed}-{i}", calls // THREADS) for i in range(THREADS)]
    for rogue in rogues:
        rogue.start()
    for rogue in rogues:
        while rogue.is_alive():
            rogue.join(0.2)
            assert server.process.poll() is None, f"seed {seed}: {server.text()[-4000:]}"
    statuses, unclear = {}, []
    for rogue in rogues:
        unclear += rogue.unclear
        for status, count in rogue.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
    print(f"seed {seed}:", {status.name: count for status, count in statuses.items()})
    assert not unclear, (seed, len(unclear), unclear[:5])
    assert statuses.get(grpc.StatusCode.OK, 0) > calls / 20, "hardly anything got through the door"
    honest_run(door, f"honest-{seed}")


def seeds():
    return ("fixed", os.environ.get("CADENZA_SEED", "1"))


def test_no_request_brings_the_server_down(binary, folder):
    calls = int(os.environ.get("HOSTILE_CALLS", CALLS))
    with support.Server(binary, folder / "data") as server:
        register(server.grpc)
        for seed in seeds():
            storm(server, seed, calls)
        assert server.stop() == 0, server.text()[-4000:]


if __name__ == "__main__":
    support.main(sys.modules[__name__])
