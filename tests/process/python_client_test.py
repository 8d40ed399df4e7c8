"""The official Python client against the real binary: domains, errors, health."""

import asyncio
import sys

import grpc
from cadence.api.v1 import (
    domain_pb2,
    service_domain_pb2 as domain_api,
    service_meta_pb2 as meta_api,
)
from cadence.api.v1 import service_meta_pb2_grpc as meta_stub, service_workflow_pb2 as workflow_api
from cadence.client import Client
from cadence.error import CadenceRpcError
from google.protobuf import duration_pb2, field_mask_pb2

import support

DAY = 24 * 3600


def registration(name, **fields):
    return domain_api.RegisterDomainRequest(
        name=name,
        workflow_execution_retention_period=duration_pb2.Duration(seconds=3 * DAY),
        **fields,
    )


def with_client(binary, folder, body):
    async def inside(server):
        async with Client(domain="orders", target=server.grpc) as client:
            await body(client, server)

    with support.Server(binary, folder / "data") as server:
        asyncio.run(inside(server))


async def refused(call):
    try:
        await call
    except Exception as error:
        return error
    raise AssertionError("it was not refused")


def test_a_domain_is_registered_described_updated_and_deprecated(binary, folder):
    async def body(client, _):
        stub = client.domain_stub
        await stub.RegisterDomain(
            registration("orders", description="all orders", owner_email="a@b", data={"k": "v"})
        )
        by_name = (
            await stub.DescribeDomain(domain_api.DescribeDomainRequest(name="orders"))
        ).domain
        assert by_name.description == "all orders" and by_name.data == {"k": "v"}, by_name
        assert by_name.status == domain_pb2.DOMAIN_STATUS_REGISTERED
        assert by_name.active_cluster_name == "cluster0" and by_name.failover_version == -24
        assert by_name.workflow_execution_retention_period.seconds == 3 * DAY
        by_id = (await stub.DescribeDomain(domain_api.DescribeDomainRequest(id=by_name.id))).domain
        assert by_id == by_name
        updated = (
            await stub.UpdateDomain(
                domain_api.UpdateDomainRequest(
                    name="orders",
                    description="new",
                    owner_email="ignored",
                    update_mask=field_mask_pb2.FieldMask(paths=["description"]),
                )
            )
        ).domain
        assert updated.description == "new" and updated.owner_email == "a@b", updated
        await stub.DeprecateDomain(domain_api.DeprecateDomainRequest(name="orders"))
        last = (await stub.DescribeDomain(domain_api.DescribeDomainRequest(name="orders"))).domain
        assert last.status == domain_pb2.DOMAIN_STATUS_DEPRECATED

    with_client(binary, folder, body)


def test_a_list_of_domains_is_paged(binary, folder):
    async def body(client, _):
        for number in range(23):
            await client.domain_stub.RegisterDomain(registration(f"d{number:02}"))
        names, token = [], b""
        while True:
            page = await client.domain_stub.ListDomains(
                domain_api.ListDomainsRequest(page_size=10, next_page_token=token)
            )
            names += [domain.name for domain in page.domains]
            token = page.next_page_token
            if not token:
                break
        expected = [*support.SYSTEM_DOMAINS, *(f"d{number:02}" for number in range(23))]
        assert names == expected, names

    with_client(binary, folder, body)


def test_errors_arrive_as_the_classes_that_the_client_knows(binary, folder):
    async def body(client, _):
        stub = client.domain_stub
        await stub.RegisterDomain(registration("orders"))
        again = await refused(stub.RegisterDomain(registration("orders")))
        assert type(again).__name__ == "DomainAlreadyExistsError", repr(again)
        unknown = await refused(
            stub.DescribeDomain(domain_api.DescribeDomainRequest(name="nobody"))
        )
        assert type(unknown).__name__ == "EntityNotExistsError", repr(unknown)
        assert "Domain nobody does not exist." in str(unknown)
        bad = await refused(stub.RegisterDomain(registration("not a name")))
        assert (
            isinstance(bad, CadenceRpcError) and bad.code == grpc.StatusCode.INVALID_ARGUMENT
        ), repr(bad)
        assert "can only include alphanumeric" in str(bad)

    with_client(binary, folder, body)


def test_health_and_cluster_info_answer(binary, folder):
    async def body(client, server):
        async with grpc.aio.insecure_channel(server.grpc) as channel:
            health = await meta_stub.MetaAPIStub(channel).Health(meta_api.HealthRequest())
            assert health.ok and health.message == "OK"
        info = await client.workflow_stub.GetClusterInfo(workflow_api.GetClusterInfoRequest())
        assert info.supported_client_versions.go_sdk == "1.7.0"

    with_client(binary, folder, body)


support.main(sys.modules[__name__])
