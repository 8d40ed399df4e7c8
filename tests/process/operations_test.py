"""Every command of docs/operations.md, run in the order in which it stands there."""

import os
import pathlib
import re
import subprocess
import sys

import support

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "operations.md"
# Ports of the page: of one server, and of a group of two (the HTTP port is 255 higher).
GROUP = [7833, 8833]


def free_base():
    """A port such that all that a group of two takes from it on are free."""
    while True:
        base = support.free_port()
        wanted = [base + 1000 * i + offset for i in range(2) for offset in (0, 255)]
        if wanted[-1] < 65536 and all(support.is_free(port) for port in wanted):
            return base


def script_of(page, http_port, base):
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, flags=re.S | re.M)
    assert len(blocks) > 8, "the page has lost its blocks"
    text = "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\nset -x\n"
    text += "\n".join(blocks)
    for i, port in enumerate(GROUP):
        text = text.replace(f"{port}", f"{base + 1000 * i}")
    return text.replace("8088", f"{http_port}")


def test_the_runbooks_do_what_they_say(binary, folder):
    (folder / "bin").mkdir()
    (folder / "bin" / "cadenza").symlink_to(pathlib.Path(binary).resolve())
    base = free_base()
    script = script_of(PAGE.read_text(), support.free_port(), base)
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "CADENCE_CLI_ADDRESS": f"127.0.0.1:{base}",
    }
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=support.LIMIT * 4,
    )
    logs = "".join(path.read_text() for path in folder.glob("*.log"))
    assert done.returncode == 0, (done.stderr[-3000:], logs[-3000:])
    assert "order-7" in done.stdout and "payments" in done.stdout, done.stdout


support.main(sys.modules[__name__])
