"""Task lists and isolation groups by the real `cadence` command line; it is in build/clients."""

import re
import sys

import support
from support import cadence

WORKFLOW = ["--tasklist", "list", "--workflow_type", "order", "--execution_timeout", "600"]


def run_cadence(server, *words):
    """What a command that must succeed prints, in domain d."""
    code, out, err = cadence(server, "d", *words)
    assert code == 0, (words, code, out, err)
    return out + err


def refused(server, *words):
    """What a command that must fail says, in domain d."""
    code, out, err = cadence(server, "d", *words)
    assert code != 0, (words, out, err)
    return out + err


def open_domain(server):
    run_cadence(server, "domain", "register", "--global_domain", "false")


@support.proves("C-011", "C-014", "C-018", "C-021")
def test_task_lists_are_described_divided_and_listed(binary, folder):
    with support.Server(binary, folder / "data") as server:
        open_domain(server)
        run_cadence(server, "workflow", "start", "--workflow_id", "w", *WORKFLOW)
        out = run_cadence(server, "admin", "tasklist", "describe", "--tl", "list")
        assert re.search(r"Decision \|\s+0 \|\s+1 \|\s+0 \|\s+1 \|\s+100000", out), out
        partition = ["admin", "tasklist", "update-partition", "--tl", "list", "--tlt", "decision"]
        out = refused(server, *partition, "--nrp", "1", "--nwp", "2", "--force")
        assert "cannot be larger than the number of read" in out, out
        run_cadence(server, *partition, "--nrp", "3", "--nwp", "2", "--force")
        out = run_cadence(server, "admin", "tasklist", "describe", "--tl", "list")
        assert "2:&{[]}" in out, out
        out = run_cadence(server, "tasklist", "list-partition", "--tl", "list")
        assert "/__cadence_sys/list/2" in out, out
        assert "list" in run_cadence(server, "admin", "tasklist", "list")


@support.proves("C-030")
def test_isolation_groups_are_drained_for_all_and_for_a_domain(binary, folder):
    with support.Server(binary, folder / "data") as server:
        open_domain(server)
        groups = ["admin", "isolation-groups"]
        assert "No groups found" in run_cadence(server, *groups, "get-global")
        run_cadence(server, *groups, "update-global", "--set-drains", "zone-1")
        run_cadence(server, *groups, "update-domain", "--set-drains", "zone-2")
    with support.Server(binary, folder / "data") as server:
        assert re.search(r"zone-1\s+Drained", run_cadence(server, *groups, "get-global"))
        assert re.search(r"zone-2\s+Drained", run_cadence(server, *groups, "get-domain"))
        run_cadence(server, *groups, "update-global", "--remove-all-drains")
        assert "No groups found" in run_cadence(server, *groups, "get-global")


support.main(sys.modules[__name__])
