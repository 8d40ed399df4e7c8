"""Authorization of the real binary: the real `cadence` command line with tokens and keys."""

import base64
import json
import subprocess
import sys
import time

import support
from support import cadence

CONFIG = """
authorization:
  oauthAuthorizer:
    enable: true
    maxJwtTTL: 86400
    jwtCredentials:
      algorithm: RS256
      publicKey: {folder}/public.pem
"""


def make_keys(folder):
    private, public = folder / "private.pem", folder / "public.pem"
    for words in (
        ["genrsa", "-out", str(private), "2048"],
        ["rsa", "-in", str(private), "-pubout", "-out", str(public)],
    ):
        subprocess.run(["openssl", *words], check=True, capture_output=True)
    return private


def letters(part):
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def make_token(private, **claims):
    """A token of now, for ten minutes."""
    claims = {"sub": "ada", "iat": int(time.time()), "TTL": 600, **claims}
    head = letters(b'{"alg":"RS256","typ":"JWT"}') + "." + letters(json.dumps(claims).encode())
    signature = subprocess.run(
        ["openssl", "dgst", "-sha256", "-sign", str(private)],
        input=head.encode(),
        capture_output=True,
        check=True,
    )
    return head + "." + letters(signature.stdout)


def start_server(binary, folder, more=""):
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(folder=folder).replace("enable: true", f"enable: true{more}"))
    return support.Server(binary, folder / "data", "--config", str(config))


def refused(server, *words):
    code, out, err = cadence(server, *words)
    assert code != 0 and "Request unauthorized" in out + err, (words, code, out, err)


def allowed(server, *words):
    code, out, err = cadence(server, *words)
    assert code == 0, (words, code, out, err)
    return out + err


@support.proves("J-022", "J-024")
def test_the_command_line_shows_tokens_and_gets_what_they_allow(binary, folder):
    private = make_keys(folder)
    admin = ["--jwt-private-key", str(private)]
    writer = ["--jwt", make_token(private, Groups="writers")]
    reader = ["--jwt", make_token(private, Groups="readers")]
    start = ["--tasklist", "list", "--workflow_type", "order", "--execution_timeout", "600"]
    with start_server(binary, folder) as server:
        refused(server, "d", "domain", "register", "--global_domain", "false")
        data = "READ_GROUPS=readers,WRITE_GROUPS=writers"
        register = ["domain", "register", "--global_domain", "false", "--domain_data", data]
        refused(server, "d", *writer, *register)
        allowed(server, "d", *admin, *register)
        refused(server, "d", "workflow", "start", "--workflow_id", "w", *start)
        refused(server, "d", *reader, "workflow", "start", "--workflow_id", "w", *start)
        allowed(server, "d", *writer, "workflow", "start", "--workflow_id", "w", *start)
        allowed(server, "d", *reader, "workflow", "describe", "--workflow_id", "w")
        refused(server, "d", *reader, "workflow", "terminate", "--workflow_id", "w")
        expired = make_token(private, Groups="writers", iat=int(time.time()) - 4000)
        refused(server, "d", "--jwt", expired, "workflow", "terminate", "--workflow_id", "w")
        allowed(server, "d", *writer, "workflow", "terminate", "--workflow_id", "w")


@support.proves("I-001")
def test_our_own_command_line_makes_a_token_from_a_key(binary, folder):
    private = make_keys(folder)
    environment = {"CADENCE_CLI_JWT_PRIVATE_KEY": str(private)}
    with start_server(binary, folder) as server:
        words = ["domain", "register", "--gd", "false", "--domain", "d", "--address", server.grpc]
        code, out, err = support.run(binary, *words, env={})
        assert code == 1 and "give --jwt TOKEN" in err, (code, out, err)
        assert support.run(binary, *words, env=environment)[0] == 0
        count = ["workflow", "count", "--domain", "d", "--address", server.grpc]
        token = make_token(private, Admin=True)
        assert support.run(binary, *count, "--jwt", token, env={})[:2] == (0, "0\n")
        assert support.run(binary, *count, "--jwt-pk", str(private), env={})[:2] == (0, "0\n")
        public = str(folder / "public.pem")
        code, out, err = support.run(binary, *count, "--jwt-private-key", public, env={})
        assert code == 2 and "is not an RSA private key" in err, (code, out, err)


def test_names_of_domains_are_listed_without_a_token_only_if_the_config_says_so(binary, folder):
    private = make_keys(folder)
    register = ["domain", "register", "--global_domain", "false", "--domain_data", "SECRET=word"]
    with start_server(binary, folder) as server:
        allowed(server, "orders", "--jwt-private-key", str(private), *register)
        code, out, err = support.run(binary, "domain", "list", "--address", server.grpc, env={})
        assert code == 1 and "Request unauthorized" in err, (code, out, err)
    with start_server(binary, folder, more="\n    showDomainNames: true") as server:
        words = ["domain", "list", "--address", server.grpc, "--format", "json"]
        code, out, err = support.run(binary, *words, env={})
        assert code == 0 and "orders" in out and "word" not in out, (code, out, err)
        refused(server, "orders", "domain", "describe")


def test_a_server_without_a_key_does_not_start(binary, folder):
    (folder / "public.pem").write_text("no key")
    server = start_server(binary, folder).launch()
    assert server.process.wait(support.LIMIT) != 0
    assert "public.pem has no RSA public key" in server.text(), server.text()


def test_a_server_that_anybody_reaches_says_so(binary, folder):
    flags = ["--grpc", f"0.0.0.0:{support.free_port()}"]
    with support.Server(binary, folder / "data", *flags) as server:
        assert "Anybody who reaches this server may do everything" in server.text()


if __name__ == "__main__":
    support.main(sys.modules[__name__])
