"""A cluster of a group loses memory (a backup is restored, an old folder is copied back), asks the
other for its past before it decides anything, and goes on with versions that nobody has seen."""

import contextlib
import json
import re
import shutil
import subprocess
import sys

import grpc

import doctor_test
import group_test
import support
from replication_test import DOMAIN, Side, kinds, until_same

LOST = [f"lost-{number}" for number in range(20)]
RECOVERING = r"(?i)lost memory|recovering"


@contextlib.contextmanager
def two_clusters(binary, folder):
    """As in replication_test; what is asked of them does not wait for long."""
    settings = folder / "dynamic.yaml"
    settings.write_text("frontend.holdCallsDuringDrainTime:\n- value: 1s\n")
    ports = [(support.free_port(), support.free_port()) for _ in range(2)]
    with contextlib.ExitStack() as stack:
        clusters = [group_test.Cluster(binary, folder, number, ports) for number in range(2)]
        for cluster in clusters:
            cluster.flags += ("--dynamic-config", str(settings))
            stack.enter_context(cluster)
        group_test.register(clusters, DOMAIN)
        group_test.until_same(clusters, DOMAIN)
        yield clusters, [Side(cluster) for cluster in clusters]


# ---- how memory is lost ----


class Backup:
    """A backup of the running server, restored in the place of what it had."""

    word = "restored"

    def __init__(self, binary, folder, cluster):
        self.binary, self.cluster, self.path = binary, cluster, str(folder / "backup")
        words = ("admin", "backup", self.path, "--address", cluster.grpc)
        code, out, err = support.run(binary, *words)
        assert code == 0, (out, err)

    def put_back(self):
        shutil.rmtree(self.cluster.data)
        words = ("admin", "restore", self.path, "--data", str(self.cluster.data))
        code, out, err = support.run(self.binary, *words)
        assert code == 0, (out, err)


class Copy:
    """The folder of the stopped server, copied away and back."""

    word = "copied"

    def __init__(self, binary, folder, cluster):
        self.cluster, self.path = cluster, folder / "copy"
        assert cluster.stop() == 0
        subprocess.run(["cp", "-a", cluster.data, self.path], check=True)
        cluster.start()

    def put_back(self):
        shutil.rmtree(self.cluster.data)
        subprocess.run(["cp", "-a", self.path, self.cluster.data], check=True)


def memory_of(binary, cluster):
    code, out, err = support.run(binary, "admin", "store", "info", "--data", str(cluster.data))
    assert code == 0, (out, err)
    return re.search(r"^memory +(\w+)$", out, re.M)[1]


# ---- the story ----


def lose(binary, folder, clusters, sides, way):
    """What cluster1 has of all runs when cluster0 loses what came after the backup."""
    sides[0].start("before")
    sides[0].signal("before", "kept")
    until_same(sides, "before")
    memory = way(binary, folder, clusters[0])
    for workflow_id in LOST:
        sides[0].start(workflow_id)
    sides[0].signal("before", "lost")
    for workflow_id in [*LOST, "before"]:
        until_same(sides, workflow_id)
    clusters[0].kill()
    memory.put_back()
    assert memory_of(binary, clusters[0]) == way.word
    return {workflow_id: sides[1].history(workflow_id) for workflow_id in [*LOST, "before"]}


def refusal(side, workflow_id):
    """Why a start is refused; None: it is taken."""
    try:
        side.start(workflow_id)
        return None
    except grpc.RpcError as error:
        return error


def is_about_recovery(error):
    """It may be asked again, and it says why."""
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error
    assert re.search(RECOVERING, error.details()), error
    return True


def first_start(side):
    """Asks for starts from the first moment on: of runs that are lost, and of one that is new. None
    of a run that others have may be taken, ever. Ends when the new one is."""

    def is_taken():
        for workflow_id in LOST[:2]:
            error = refusal(side, workflow_id)
            assert error is not None, f"{workflow_id} was started again"
            if error.code() != grpc.StatusCode.ALREADY_EXISTS:
                is_about_recovery(error)
        error = refusal(side, "new")
        return error is None or not is_about_recovery(error)

    support.wait_until(is_taken, "a start to be taken")


def expect_past(sides, before):
    """All that cluster1 had is in both, and goes on from there."""
    for workflow_id, events in before.items():
        found = until_same(sides, workflow_id)
        assert found[: len(events)] == events, (workflow_id, kinds(events), kinds(found))


def expect_new_versions(sides, before):
    highest = max(event.version for events in before.values() for event in events)
    sides[0].signal("before", "next")
    events = support.wait_until(
        lambda: until_same(sides, "before")[-1].version > highest and until_same(sides, "before"),
        "an event with a version that nobody had",
    )
    assert kinds(events).count("workflow_execution_signaled") == 3, kinds(events)
    names = [
        event.workflow_execution_signaled_event_attributes.signal_name
        for event in events
        if event.HasField("workflow_execution_signaled_event_attributes")
    ]
    assert names == ["kept", "lost", "next"], names
    assert [event.event_id for event in events] == list(range(1, len(events) + 1))
    for cluster in (side.cluster for side in sides):
        domain = cluster.describe(DOMAIN)
        assert domain.active_cluster_name == "cluster0", domain
        assert domain.failover_version > highest, (domain.failover_version, highest)


def expect_all_is_well(binary, clusters):
    for cluster in clusters:
        support.wait_until(
            lambda: doctor_test.examine(binary, cluster) == [], f"{cluster.name} to be well"
        )
        for text in (told_by_health(binary, cluster), support.get(cluster.http, "/healthz")[1]):
            assert not re.search(RECOVERING, text), text
        text, peers = told_by_peers(binary, cluster)
        assert not re.search(RECOVERING, text) and "isPastWanted" not in str(peers), (text, peers)
        assert series(cluster)[0] == 0, series(cluster)
        words = ["domain", "describe", "--domain", DOMAIN, "--address", cluster.grpc]
        code, out, err = support.run(binary, *words)
        assert code == 0 and not re.search(RECOVERING, out), (out, err)


def told_by_health(binary, cluster):
    _, out, err = support.run(binary, "health", "--address", cluster.grpc)
    return out + err


def told_by_peers(binary, cluster):
    """As text, and as JSON."""
    words = ["admin", "cluster", "peers", "--address", cluster.grpc]
    answers = [support.run(binary, *words, *more) for more in ([], ["--format", "json"])]
    assert all(code == 0 for code, _, _ in answers), answers
    return answers[0][1], json.loads(answers[1][1])


def series(cluster):
    """What the metrics say: is it recovering, and how many shards of cluster1 it has read."""
    _, text = support.get(cluster.http, "/metrics")
    wanted = r"^cadenza_recovering(?:_shards_read{.*\"cluster1\"})? (\d+)$"
    return tuple(int(value) for value in re.findall(wanted, text, re.M))


def expect_told(binary, cluster):
    """What operators see while the other cluster is away."""
    code, out, _ = support.run(binary, "health", "--address", cluster.grpc)
    assert code == 0 and out.startswith("recovering: this cluster lost memory"), out
    status, text = support.get(cluster.http, "/healthz")
    assert status == 200 and text.startswith("recovering: this cluster lost memory"), text
    text, peers = told_by_peers(binary, cluster)
    assert text.endswith(
        "cluster0 lost memory and reads from the others what it had:\n"
        "  cluster1: has not answered yet\n"
    ), text
    (peer,) = peers["peers"]
    assert peer["isPastWanted"] is True and peer["pastRead"] == 0, peer
    assert series(cluster) == (1, 0), series(cluster)
    words = ["admin", "doctor", "--address", cluster.grpc, "--format", "json"]
    code, out, _ = support.run(binary, *words)
    first = json.loads(out)[0]
    assert code == 1 and first == {
        "what": "cluster0 lost memory (its store was restored or copied) and reads from the others "
        "what it had: cluster1 (has not answered yet, is away now). Global domains that are active "
        "in cluster0 are not served until it has.",
        "do": "It needs all of them; start those that are away, and let it read. If one is gone "
        "for good: restart this server with --accept-loss cluster1; what only that one has is lost "
        "then.",
    }, out
    words = ["domain", "describe", "--domain", DOMAIN, "--address", cluster.grpc]
    code, out, _ = support.run(binary, *words)
    assert code == 0 and "\nRecovering: this cluster lost memory, and decides nothing" in out, out


def expect_told_that_nobody_is_asked(binary, cluster):
    for text in (told_by_health(binary, cluster), support.get(cluster.http, "/healthz")[1]):
        assert "recovering: this cluster lost memory" in text, text
        assert "no other one is enabled in its configuration that could be asked" in text, text
    found = doctor_test.examine(binary, cluster)
    assert len(found) == 1 and found[0].startswith("The server is recovering: "), found
    assert series(cluster) == (1,), series(cluster)


def tell(binary, folder, way):
    with two_clusters(binary, folder) as (clusters, sides):
        before = lose(binary, folder, clusters, sides, way)
        clusters[0].start()
        first_start(sides[0])
        for workflow_id in LOST:  # not waited for: a start was taken
            assert sides[0].history(workflow_id), f"{workflow_id} was not read before a start"
            error = refusal(sides[0], workflow_id)
            assert error and error.code() == grpc.StatusCode.ALREADY_EXISTS, (workflow_id, error)
        expect_past(sides, before)
        until_same(sides, "new")
        expect_new_versions(sides, before)
        expect_all_is_well(binary, clusters)
        assert clusters[0].stop() == 0
        assert memory_of(binary, clusters[0]) == "whole"
        clusters[0].start()  # which is an ordinary one
        assert not re.search(RECOVERING, clusters[0].text()), clusters[0].text()
        sides[0].start("later")
        until_same(sides, "later")


def test_a_restored_cluster_reads_what_it_lost_before_it_decides(binary, folder):
    tell(binary, folder, Backup)


def test_a_folder_that_was_copied_back_is_read_up_before_anything_is_decided(binary, folder):
    tell(binary, folder, Copy)


def test_a_cluster_waits_for_the_one_that_has_its_past_and_says_so(binary, folder):
    with two_clusters(binary, folder) as (clusters, sides):
        before = lose(binary, folder, clusters, sides, Backup)
        assert clusters[1].stop() == 0
        for _ in range(2):  # a restart forgets nothing
            clusters[0].start()
            for workflow_id in ("new", LOST[0]):
                error = refusal(sides[0], workflow_id)
                assert error and is_about_recovery(error), error
            assert re.search(RECOVERING, clusters[0].text())
            expect_told(binary, clusters[0])
            clusters[0].kill()
            assert memory_of(binary, clusters[0]) == "restored"
        clusters[0].start()
        clusters[1].start()
        first_start(sides[0])
        expect_past(sides, before)
        expect_new_versions(sides, before)
        expect_all_is_well(binary, clusters)


def test_a_cluster_that_is_to_accept_its_loss_goes_on_with_versions_far_ahead(binary, folder):
    with two_clusters(binary, folder) as (clusters, sides):
        before = lose(binary, folder, clusters, sides, Backup)
        assert clusters[1].stop() == 0
        flags = clusters[0].flags
        clusters[0].flags = (*flags, "--accept-loss", "nobody")
        assert clusters[0].launch().process.wait(support.LIMIT) == 1
        assert "'nobody' is not another cluster of the group" in clusters[0].text()
        clusters[0].flags = (*flags, "--accept-loss", "cluster1")
        clusters[0].start()
        support.wait_until(lambda: refusal(sides[0], "new") is None, "a start to be taken")
        assert sides[0].history(LOST[0]) is None  # nobody could be asked
        version = clusters[0].describe(DOMAIN).failover_version
        assert version > 1000 * 10 and version % 10 == 1, version
        assert sides[0].history("new")[0].version == version
        clusters[1].start()
        until_same(sides, "new")
        assert sides[1].history(LOST[0]) == before[LOST[0]]
        assert clusters[0].stop() == 0
        assert memory_of(binary, clusters[0]) == "whole"


def test_a_cluster_that_has_nobody_to_ask_says_so_and_goes_on_when_it_is_told_to(binary, folder):
    with two_clusters(binary, folder) as (clusters, sides):
        lose(binary, folder, clusters, sides, Backup)
        assert clusters[1].stop() == 0
        config = folder / "cluster0.yaml"
        alone = config.read_text().rsplit("enabled: true", 1)
        config.write_text("enabled: false".join(alone))
        clusters[0].start()
        expect_told_that_nobody_is_asked(binary, clusters[0])
        assert is_about_recovery(refusal(sides[0], "new"))
        clusters[0].kill()
        clusters[0].flags += ("--accept-loss", "all")
        clusters[0].start()
        support.wait_until(lambda: refusal(sides[0], "new") is None, "a start to be taken")
        expect_all_is_well(binary, clusters[:1])


if __name__ == "__main__":
    support.main(sys.modules[__name__])
