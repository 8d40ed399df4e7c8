#!/usr/bin/env python3
"""Are our .proto files those of the official client?

Compares every message, enum, service and file of `cadence-python-client` with src/wire/proto, and
the other way round: names, numbers, types, labels, oneofs, values, methods. One check for each of
them; what only one side has must be in EXPECTED_DIFFERENCES or belong to a package that the client
does not ship.

Run it with a Python that has the client installed:

    python descriptors_test.py [--protos DIR] [--include DIR] [--protoc PROGRAM]
"""

import argparse
import importlib
import pathlib
import pkgutil
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

PACKAGE = "uber.cadence.api.v1"

# What the client does not ship, and why we have it.
PACKAGES_NOT_IN_CLIENT = {
    "uber.cadence.admin.v1": "AdminAPI, for operators and peer clusters",
    "uber.cadence.shared.v1": "details of errors between the hosts of a cluster",
    "grpc.health.v1": "the health service of gRPC",
    "cadenza.admin.v1": "calls of our own, for operators",
    "cadenza.storage.v1": "records of our own store",
    "cadenza.internal.v1": "what owners of one cluster want of each other",
}

# What differs between the client and us on purpose: the name of the check -> why. An entry that no
# longer differs is a failure too.
EXPECTED_DIFFERENCES = {
    "file uber/cadence/api/v1/service_domain.proto": "FailoverOutcome is of a field of our own",
    f"message {PACKAGE}.FailoverOutcome": "of a field of our own: how a graceful failover ended",
    "file uber/cadence/api/v1/domain.proto": "FailoverProgress is of a field of our own",
    f"message {PACKAGE}.FailoverProgress": "of a field of our own: how far a graceful failover is",
    f"message {PACKAGE}.ClusterShards": "of FailoverProgress and FailoverOutcome",
}

OWN_FIELDS = 1000  # from here on fields of Cadence's messages are our own: its clients skip them

FIELD = descriptor_pb2.FieldDescriptorProto


def our_files(protoc, protos, include):
    """The parsed .proto files of ours, without what they import from the system."""
    names = sorted(str(path.relative_to(protos)) for path in protos.rglob("*.proto"))
    with tempfile.NamedTemporaryFile(suffix=".pb") as out:
        paths = [f"-I{protos}", f"-I{include}", f"--descriptor_set_out={out.name}"]
        subprocess.run([protoc, *paths, *names], check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(out.name).read_bytes()).file


def client_files():
    """The parsed .proto files that the client carries."""
    package = importlib.import_module("cadence.api.v1")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.endswith("_pb2"):
            file = descriptor_pb2.FileDescriptorProto()
            importlib.import_module(f"cadence.api.v1.{module.name}").DESCRIPTOR.CopyToProto(file)
            yield file


def field_fact(message, field):
    """Everything about a field that its bytes or its API depend on."""
    oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""
    return {
        "name": field.name,
        "type": FIELD.Type.Name(field.type),
        "of": field.type_name,
        "label": FIELD.Label.Name(field.label),
        "oneof": oneof,
        "explicit presence": field.proto3_optional,
        "packed": field.options.packed if field.options.HasField("packed") else None,
    }


def message_facts(prefix, message, facts):
    """Adds the message and what is nested in it; entries of maps are nested messages."""
    name = f"{prefix}.{message.name}"
    fact = {
        f"field {field.number}": field_fact(message, field)
        for field in message.field
        if field.number < OWN_FIELDS
    }
    fact["is a map entry"] = message.options.map_entry
    facts[f"message {name}"] = fact
    for nested in message.nested_type:
        message_facts(name, nested, facts)
    for enum in message.enum_type:
        enum_facts(name, enum, facts)


def enum_facts(prefix, enum, facts):
    """Adds the enum."""
    facts[f"enum {prefix}.{enum.name}"] = {str(value.number): value.name for value in enum.value}


def service_facts(prefix, service, facts):
    """Adds the service and its methods, in no order."""
    facts[f"service {prefix}.{service.name}"] = {
        method.name: {
            "takes": method.input_type,
            "gives": method.output_type,
            "streams in": method.client_streaming,
            "streams out": method.server_streaming,
        }
        for method in service.method
    }


def file_facts(files):
    """All facts of the files, by what they are about."""
    facts = {}
    for file in files:
        top = [*file.message_type, *file.enum_type, *file.service]
        folder, name = file.package.replace(".", "/"), pathlib.PurePath(file.name).name
        facts[f"file {folder}/{name}"] = {
            "syntax": file.syntax,
            "package": file.package,
            **{entity.name: "is here" for entity in top},
        }
        for message in file.message_type:
            message_facts(file.package, message, facts)
        for enum in file.enum_type:
            enum_facts(file.package, enum, facts)
        for service in file.service:
            service_facts(file.package, service, facts)
    return facts


def is_client_package(name):
    """Could the client have it? False for the packages that it does not ship."""
    thing = name.split(" ", 1)[1].replace("/", ".")
    return not any(thing.startswith(f"{package}.") for package in PACKAGES_NOT_IN_CLIENT)


def differences(ours, theirs):
    """Sentences that say what differs between two facts; none: they are the same."""
    if ours is None or theirs is None:
        return ["only the client has it" if ours is None else "only we have it"]
    keys = sorted(ours.keys() | theirs.keys())
    return [
        f"{key}: ours {ours.get(key)}, the client's {theirs.get(key)}"
        for key in keys
        if ours.get(key) != theirs.get(key)
    ]


def compare(ours, theirs):
    """Prints one line for each check; returns how many passed and how many failed."""
    passed = failed = 0
    for name in sorted(name for name in ours.keys() | theirs.keys() if is_client_package(name)):
        found = differences(ours.get(name), theirs.get(name))
        excuse = EXPECTED_DIFFERENCES.get(name)
        if excuse is not None and not found:
            found = [f"expected to differ ({excuse}), but does not"]
        elif excuse is not None:
            found = []
        passed, failed = passed + (not found), failed + bool(found)
        if found:
            print(f"FAIL {name}")
        for sentence in found:
            print(f"     {sentence}")
    return passed, failed


def main():
    """Exit code 0: the same but for what is expected."""
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--protos", type=pathlib.Path, default=here.parents[1] / "src/wire/proto")
    parser.add_argument("--include", default="/usr/include", help="where google/protobuf is")
    parser.add_argument("--protoc", default="protoc")
    arguments = parser.parse_args()

    theirs = file_facts(client_files())
    ours = file_facts(our_files(arguments.protoc, arguments.protos, arguments.include))
    if not any(name.startswith(f"message {PACKAGE}.") for name in theirs):
        sys.exit("the client has no messages: is it another version?")
    unknown = EXPECTED_DIFFERENCES.keys() - (ours.keys() | theirs.keys())
    if unknown:
        sys.exit(f"nobody has {', '.join(sorted(unknown))}")
    passed, failed = compare(ours, theirs)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
