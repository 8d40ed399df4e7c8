"""The real `cadence` command line against the real binary; it is in build/clients."""

import sys

import support
from support import cadence


def test_a_local_domain_is_registered_and_described(binary, folder):
    with support.Server(binary, folder / "data") as server:
        code, out, err = cadence(
            server,
            "d",
            "domain",
            "register",
            "--global_domain",
            "false",
            "--retention",
            "5",
            "--description",
            "first",
            "--owner_email",
            "a@b",
        )
        assert code == 0 and "successfully registered" in out + err, (code, out, err)
        code, out, err = cadence(server, "d", "domain", "describe")
        assert code == 0, (code, out, err)
        for words in (
            "Name: d",
            "Description: first",
            "OwnerEmail: a@b",
            "Status: REGISTERED",
            "cluster0",
        ):
            assert words in out, (words, out)


def test_registering_with_the_cli_s_defaults_works(binary, folder):
    with support.Server(binary, folder / "data") as server:
        code, out, err = cadence(server, "samples-domain", "domain", "register")
        assert code == 0, (code, out, err)
        code, out, err = cadence(server, "samples-domain", "domain", "describe", "--print_json")
        assert code == 0 and '"samples-domain"' in out, (code, out, err)


def test_a_domain_is_updated_and_listed(binary, folder):
    with support.Server(binary, folder / "data") as server:
        assert cadence(server, "d", "domain", "register", "--global_domain", "false")[0] == 0
        code, out, err = cadence(
            server, "d", "domain", "update", "--description", "second", "--retention", "7"
        )
        assert code == 0, (code, out, err)
        code, out, err = cadence(server, "d", "domain", "describe")
        assert "Description: second" in out and "RetentionInDays: 7" in out, (out, err)
        code, out, err = cadence(server, "d", "admin", "domain", "list")
        assert code == 0 and "d" in out.split(), (code, out, err)


def test_mistakes_are_told_in_the_words_that_users_know(binary, folder):
    with support.Server(binary, folder / "data") as server:
        assert cadence(server, "d", "domain", "register", "--global_domain", "false")[0] == 0
        code, out, err = cadence(server, "d", "domain", "register", "--global_domain", "false")
        assert code != 0 and "already registered" in out + err, (code, out, err)
        code, out, err = cadence(server, "nobody", "domain", "describe")
        assert code != 0 and "not exist" in out + err, (code, out, err)


support.main(sys.modules[__name__])
