"""Groups of real processes: what is changed in one cluster is seen in the others, at once."""

import contextlib
import pathlib
import statistics
import sys
import time

import grpc
from cadence.api.v1 import (
    domain_pb2,
    service_domain_pb2 as domain_api,
    service_domain_pb2_grpc as domain_stub,
)
from google.protobuf import duration_pb2, field_mask_pb2

import support

INITIAL_VERSIONS = (1, 0, 2)
SEEN_LIMIT = 10  # seconds; what is measured is milliseconds, Cadence's own refresh is 10 s


class Cluster(support.Server):
    """One cluster of a group: a server with a channel that stays open."""

    def __init__(self, binary, folder, number, ports):
        self.name = f"cluster{number}"
        config = folder / f"{self.name}.yaml"
        config.write_text(group_config(number, ports))
        super().__init__(binary, folder / self.name, "--config", str(config), ports=ports[number])
        self.api = domain_stub.DomainAPIStub(grpc.insecure_channel(self.grpc))

    def describe(self, name):
        """The domain, or None while nobody knows it here."""
        try:
            return self.api.DescribeDomain(
                domain_api.DescribeDomainRequest(name=name), timeout=support.LIMIT
            ).domain
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.NOT_FOUND, error
            return None

    def active(self, name):
        domain = self.describe(name)
        return domain and domain.active_cluster_name

    def failover(self, name, target):
        return self.api.FailoverDomain(
            domain_api.FailoverDomainRequest(
                domain_name=name, domain_active_cluster_name=target, reason="test"
            ),
            timeout=support.LIMIT,
        ).domain


def group_config(number, ports):
    lines = [
        "clusterGroupMetadata:",
        "  failoverVersionIncrement: 10",
        "  primaryClusterName: cluster0",
        f"  currentClusterName: cluster{number}",
        "  clusterGroup:",
    ]
    for other, (grpc_port, _) in enumerate(ports):
        lines += [
            f"    cluster{other}:",
            "      enabled: true",
            f"      initialFailoverVersion: {INITIAL_VERSIONS[other]}",
            "      rpcName: cadence-frontend",
            f"      rpcAddress: 127.0.0.1:{grpc_port}",
            "      rpcTransport: grpc",
        ]
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def group(binary, folder, count):
    """`count` clusters that run."""
    ports = [(support.free_port(), support.free_port()) for _ in range(count)]
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(Cluster(binary, folder, number, ports)) for number in range(count)
        ]


def clusters_of(group_):
    return [domain_pb2.ClusterReplicationConfiguration(cluster_name=c.name) for c in group_]


def register(group_, name, **fields):
    group_[0].api.RegisterDomain(
        domain_api.RegisterDomainRequest(
            name=name,
            is_global_domain=True,
            active_cluster_name=fields.pop("active", "cluster0"),
            clusters=clusters_of(group_),
            workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
            **fields,
        ),
        timeout=support.LIMIT,
    )


def update(cluster, name, **fields):
    mask = field_mask_pb2.FieldMask(paths=list(fields))
    cluster.api.UpdateDomain(
        domain_api.UpdateDomainRequest(name=name, update_mask=mask, **fields),
        timeout=support.LIMIT,
    )


def seen_after(condition, what):
    """Milliseconds until the condition holds; asks without a pause."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < SEEN_LIMIT, f"waited {SEEN_LIMIT} s for {what}"
    return (time.monotonic() - begin) * 1e3


def shared(domain):
    """What every cluster must show alike."""
    copy = domain_pb2.Domain()
    copy.CopyFrom(domain)
    copy.ClearField("failover_info")
    copy.data.pop("FailoverHistory", None)  # with this cluster's own times
    return copy


def same_everywhere(group_, name):
    domains = [cluster.describe(name) for cluster in group_]
    return all(domains) and all(shared(d) == shared(domains[0]) for d in domains) and domains[0]


def until_same(group_, name):
    return support.wait_until(lambda: same_everywhere(group_, name), f"{name} to be the same")


def history(cluster, domain_id):
    found, token = [], b""
    while True:
        request = domain_api.ListFailoverHistoryRequest()
        request.filters.domain_id = domain_id
        request.pagination.page_size = 2
        request.pagination.next_page_token = token
        page = cluster.api.ListFailoverHistory(request, timeout=support.LIMIT)
        found += page.failover_events
        token = page.next_page_token
        if not token:
            return found


def versions(cluster, domain_id):
    """Failover versions in the history, oldest first."""
    return sorted(
        move.to_cluster.failover_version
        for event in history(cluster, domain_id)
        for move in event.cluster_failovers
    )


def cadence(server, domain, *words):
    code, out, err = support.cadence(server, domain, *words)
    assert code == 0, (words, code, out, err)
    return out + err


def test_a_global_domain_of_the_primary_is_known_in_the_other_with_the_same_id(binary, folder):
    with group(binary, folder, 2) as (one, other):
        register([one, other], "orders", description="all orders", data={"team": "a"})
        time_ = seen_after(lambda: other.describe("orders"), "orders to arrive")
        print(f"    registered, seen in the other after {time_:.1f} ms")
        domain = until_same([one, other], "orders")
        assert domain.id and domain.failover_version == 1 and domain.is_global_domain
        assert domain.description == "all orders" and domain.data == {"team": "a"}


def test_a_failover_asked_in_one_is_visible_in_the_other_in_well_under_a_second(binary, folder):
    with group(binary, folder, 2) as (one, other):
        register([one, other], "orders")
        until_same([one, other], "orders")
        times = []
        for number in range(20):
            asked, watched = ((one, other), (other, one))[number % 2]
            target = f"cluster{(number + 1) % 2}"
            asked.failover("orders", target)
            times.append(seen_after(lambda: watched.active("orders") == target, target))
        print(
            f"    20 failovers, seen in the other after {statistics.median(times):.1f} ms "
            f"in the median, {max(times):.1f} ms at most"
        )
        domain = until_same([one, other], "orders")
        assert domain.active_cluster_name == "cluster0" and domain.failover_version == 101, domain
        wanted = sorted([10 * n for n in range(1, 11)] + [10 * n + 1 for n in range(1, 11)])
        for cluster in (one, other):
            support.wait_until(
                lambda: versions(cluster, domain.id) == wanted, "the failover history"
            )


def test_three_clusters_agree_when_all_of_them_fail_over_at_once(binary, folder):
    with group(binary, folder, 3) as clusters:
        register(clusters, "orders")
        until_same(clusters, "orders")
        for number in range(10):
            calls = [
                cluster.api.FailoverDomain.future(
                    domain_api.FailoverDomainRequest(
                        domain_name="orders",
                        domain_active_cluster_name=f"cluster{(number + place) % 3}",
                    )
                )
                for place, cluster in enumerate(clusters)
            ]
            done = [call for call in calls if call.exception(support.LIMIT) is None]
            domain = until_same(clusters, "orders")
            newest = max(
                [domain.failover_version] + [c.result().domain.failover_version for c in done]
            )
            assert domain.failover_version == newest, (domain, newest)
            remainder = INITIAL_VERSIONS[int(domain.active_cluster_name[-1])]
            assert newest % 10 == remainder, domain


def test_attributes_of_an_active_active_domain_move_one_by_one(binary, folder):
    def attributes(**cities):
        return domain_pb2.ActiveClusters(
            active_clusters_by_cluster_attribute={
                "city": domain_pb2.ClusterAttributeScope(
                    cluster_attributes={
                        city: domain_pb2.ActiveClusterInfo(active_cluster_name=cluster)
                        for city, cluster in cities.items()
                    }
                )
            }
        )

    with group(binary, folder, 3) as clusters:
        register(clusters, "orders", active_clusters=attributes(oslo="cluster0", lima="cluster1"))
        until_same(clusters, "orders")
        clusters[1].api.FailoverDomain(
            domain_api.FailoverDomainRequest(
                domain_name="orders", active_clusters=attributes(oslo="cluster2")
            ),
            timeout=support.LIMIT,
        )
        update(clusters[2], "orders", active_clusters=attributes(lima="cluster0"))

        def has_moved():
            domain = same_everywhere(clusters, "orders")
            if not domain:
                return False
            scopes = domain.active_clusters.active_clusters_by_cluster_attribute
            cities = scopes["city"].cluster_attributes
            return (
                cities["oslo"].active_cluster_name == "cluster2"
                and cities["lima"].active_cluster_name == "cluster0"
                and cities["oslo"].failover_version % 10 == 2
                and cities["lima"].failover_version % 10 == 1
            )

        support.wait_until(has_moved, "both attributes to have moved everywhere")


def test_a_peer_that_was_down_catches_up_after_its_restart(binary, folder):
    with group(binary, folder, 3) as clusters:
        register(clusters, "before")
        until_same(clusters, "before")
        assert clusters[1].stop() == 0
        clusters[2].kill()
        for number in range(30):
            register(clusters, f"meanwhile-{number}")
        update(clusters[0], "before", description="changed")
        clusters[0].failover("before", "cluster2")
        clusters[0].failover("before", "cluster1")
        clusters[1].start()
        clusters[2].start()
        for name in ["before"] + [f"meanwhile-{number}" for number in range(30)]:
            until_same(clusters, name)
        domain = clusters[2].describe("before")
        assert domain.description == "changed" and domain.active_cluster_name == "cluster1"
        for cluster in clusters:
            support.wait_until(lambda: versions(cluster, domain.id) == [2, 10], "the history")


@support.proves("J-006")
def test_a_cluster_that_is_not_enabled_is_not_asked_and_takes_no_domain(binary, folder):
    ports = [(support.free_port(), support.free_port()) for _ in range(2)]
    cluster = Cluster(binary, folder, 0, ports)
    config = folder / "cluster0.yaml"
    enabled, text = "enabled: true", config.read_text()
    at = text.index(enabled, text.index("cluster1:"))
    with cluster:  # nobody runs the other one
        register([cluster], "d")
        support.wait_until(lambda: "cannot be followed" in cluster.text(), "it to be missed")
        cluster.stop()
    config.write_text(text[:at] + "enabled: false" + text[at + len(enabled) :])
    with cluster:
        for _ in range(3):
            with contextlib.suppress(grpc.RpcError):
                cluster.failover("d", "cluster1")
                raise AssertionError("a domain went to a cluster that is not enabled")
            time.sleep(0.5)
        assert cluster.active("d") == "cluster0"
        assert "cannot be followed" not in cluster.text()


def test_a_deleted_domain_is_gone_everywhere_also_where_nobody_was_told(binary, folder):
    with group(binary, folder, 2) as (one, other):
        register([one, other], "orders")
        until_same([one, other], "orders")
        assert other.stop() == 0
        name = {"name": "orders"}
        one.api.DeprecateDomain(domain_api.DeprecateDomainRequest(**name), timeout=support.LIMIT)
        one.api.DeleteDomain(domain_api.DeleteDomainRequest(**name), timeout=support.LIMIT)
        assert one.describe("orders") is None
        other.start()
        support.wait_until(lambda: other.describe("orders") is None, "the deletion", SEEN_LIMIT)


def test_only_the_primary_takes_settings_and_local_domains_stay_local(binary, folder):
    with group(binary, folder, 2) as (one, other):
        register([one, other], "orders")
        until_same([one, other], "orders")
        for call in (
            lambda: update(other, "orders", description="x"),
            lambda: register([other, one], "refused"),
        ):
            try:
                call()
                raise AssertionError("a cluster that is not primary took it")
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
                assert "primary" in error.details(), error
        other.api.RegisterDomain(
            domain_api.RegisterDomainRequest(
                name="local",
                workflow_execution_retention_period=duration_pb2.Duration(seconds=86400),
            ),
            timeout=support.LIMIT,
        )
        register([one, other], "later")
        until_same([one, other], "later")
        assert one.describe("local") is None and not other.describe("local").is_global_domain
        assert one.describe("orders").description == ""


def test_the_real_command_line_registers_fails_over_and_describes(binary, folder):
    with group(binary, folder, 2) as (one, other):
        words = ["--ac", "cluster0", "--cl", "cluster0,cluster1"]
        cadence(one, "orders", "domain", "register", *words)
        until_same([one, other], "orders")
        cadence(one, "orders", "domain", "update", "--ac", "cluster1")
        support.wait_until(lambda: other.active("orders") == "cluster1", "the update", SEEN_LIMIT)
        for cluster in (one, other):
            text = cadence(cluster, "orders", "domain", "describe")
            assert "ActiveClusterName: cluster1" in text and "cluster0" in text, text
        cadence(other, "orders", "domain", "failover", "--ac", "cluster0", "--reason", "drill")
        support.wait_until(lambda: one.active("orders") == "cluster0", "the failover", SEEN_LIMIT)
        for cluster in (one, other):
            text = cadence(cluster, "orders", "domain", "describe")
            assert "ActiveClusterName: cluster0" in text, text
        assert until_same([one, other], "orders").failover_version == 11


# ---- files that do not fit ----


def edited(cluster, *edits):
    """The cluster's file with lines replaced; None takes one out."""
    path = pathlib.Path(cluster.flags[cluster.flags.index("--config") + 1])
    text = path.read_text()
    for old, new in edits:
        assert old in text, (old, text)
        text = text.replace(old, new, 1)
    path.write_text(text)
    return path


def test_a_file_with_a_fault_is_refused_at_the_start_by_file_and_key(binary, folder):
    ports = [(support.free_port(), support.free_port()) for _ in range(2)]
    own = "    cluster0:\n      enabled: true\n"
    address = f"      rpcAddress: 127.0.0.1:{ports[1][0]}\n"
    for number, (edit, key, advice) in enumerate(
        (
            ((address, ""), "cluster1.rpcAddress is not set", "give host:port"),
            (
                (own, own.replace("true", "false")),
                "cluster0.enabled is false",
                "set it to true",
            ),
            (
                (own, own + "      region: us-west\n"),
                "cluster0.region is 'us-west', which is not under clusterGroupMetadata.regions",
                "add it there",
            ),
        )
    ):
        cluster = Cluster(binary, folder, 0, ports)
        path = edited(cluster, edit)
        data = str(folder / f"data{number}")
        code, out, err = support.run(binary, "server", "--config", str(path), "--data", data)
        said = out + err
        assert code == 1, (code, out, err)
        assert str(path) in said and f"clusterGroup.{key}" in said and advice in said, said


def test_members_with_other_numbers_do_not_follow_each_other_and_say_both_values(binary, folder):
    ports = [(support.free_port(), support.free_port()) for _ in range(2)]
    with contextlib.ExitStack() as stack:
        clusters = [Cluster(binary, folder, number, ports) for number in range(2)]
        edited(clusters[1], ("failoverVersionIncrement: 10", "failoverVersionIncrement: 7"))
        for cluster in clusters:
            stack.enter_context(cluster)
        register(clusters, "orders")

        def findings(cluster):
            return support.run(binary, "admin", "doctor", "--address", cluster.grpc)[1]

        for number, values in ((0, "10 here and 7 in cluster1"), (1, "7 here and 10 in cluster0")):
            support.wait_until(
                lambda: f"failoverVersionIncrement is {values}" in findings(clusters[number]),
                f"cluster{number} to say what differs",
            )
        assert "Make clusterGroupMetadata the same" in findings(clusters[0])
        assert clusters[1].describe("orders") is None

        # Once the file is right they go on where they were.
        clusters[1].stop()
        edited(clusters[1], ("failoverVersionIncrement: 7", "failoverVersionIncrement: 10"))
        stack.enter_context(clusters[1])
        until_same(clusters, "orders")
        support.wait_until(
            lambda: "clusterGroupMetadata" not in findings(clusters[0]), "doctor to find nothing"
        )


if __name__ == "__main__":
    support.main(sys.modules[__name__])
