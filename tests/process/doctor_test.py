"""`cadenza admin doctor`: what it says of servers that are well and of those that are not."""

import contextlib
import json
import sys

import group_test
import support


def examine(binary, server, *flags):
    """(exit code, what is wrong)."""
    words = ["admin", "doctor", "--address", server.grpc, "--format", "json", *flags]
    code, out, err = support.run(binary, *words)
    findings = json.loads(out)
    assert code == (1 if findings else 0), (code, out, err)
    assert all(finding["what"] and finding["do"] for finding in findings), findings
    return [finding["what"] for finding in findings]


def test_nothing_is_wrong_with_a_server_that_is_well(binary, folder):
    with support.Server(binary, folder / "data") as server:
        words = ["admin", "doctor", "--address", server.grpc]
        done = support.run(binary, *words)
        assert done == (0, f"Nothing is wrong with {server.grpc}.\n", ""), done
        code, out, _ = support.run(binary, *words, "--data", str(folder / "nowhere"))
        assert code == 1 and "nowhere cannot be looked at" in out, (code, out)


def test_a_server_that_is_not_there_is_said(binary, folder):
    server = support.Server(binary, folder / "data")
    (found,) = examine(binary, server)
    assert f"{server.grpc} does not answer" in found, found


def test_a_group_that_is_well_has_nothing_to_say(binary, folder):
    with group_test.group(binary, folder, 2) as clusters:
        group_test.register(clusters, "orders")
        group_test.until_same(clusters, "orders")
        for cluster in clusters:
            support.wait_until(lambda: examine(binary, cluster) == [], f"{cluster.name} to be well")


def test_a_cluster_that_is_away_is_said_with_the_domains_that_are_active_there(binary, folder):
    with contextlib.ExitStack() as stack:
        clusters = stack.enter_context(group_test.group(binary, folder, 2))
        group_test.register(clusters, "orders", active="cluster1")
        group_test.register(clusters, "payments", active="cluster0")
        group_test.until_same(clusters, "orders")
        clusters[1].kill()
        found = support.wait_until(lambda: examine(binary, clusters[0]), "it to be noticed")
        assert len(found) == 2, found
        assert "cluster0 cannot follow cluster1 at " + clusters[1].grpc in found[0], found
        assert found[1] == "1 domains are active in a cluster that is away: orders.", found
        clusters[1].start()
        support.wait_until(lambda: examine(binary, clusters[0]) == [], "cluster0 to be well again")


if __name__ == "__main__":
    support.main(sys.modules[__name__])
