"""Play what a newcomer types: the README, then the first page of the handbook, from a bare clone.

`make welcome`. It needs Python, git, make and the package registry; after the installation the commands run
without a network where this machine can take it from them (`unshare`, as root on Linux), and without any key.
It fails where a command fails, or where all of it takes longer than ten minutes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/first_judge.md")
MOST_S = 600.0
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.MULTILINE)
_EXIT = re.compile(r"\s+# exit (\d+)$")


def commands(page: str) -> list[str]:
    """The commands that stand in the console blocks of a page, in their order."""
    return [command for block in _BLOCK.findall(page) for command in _COMMAND.findall(block)]


def script(page: str) -> str:
    """The commands as a shell script that says each before it runs it, and stops where one ends otherwise."""
    lines = ["set -u"]
    for command in commands(page):
        expected = match[1] if (match := _EXIT.search(command)) else "0"
        shown = command.replace("'", "'\\''")
        lines += [
            f"printf '%s\\n' '$ {shown}'",
            command,
            f'code=$?; [ "$code" = {expected} ] || {{ echo "it ended in $code, not in {expected}"; exit 1; '
            f"}}",
        ]
    return "\n".join(lines) + "\n"


def _environment(home: Path, checkout: Path) -> dict[str, str]:
    """An empty environment: a home of its own, no key, and what was installed on the path."""
    home.mkdir()
    path = os.pathsep.join([str(checkout / ".venv" / "bin"), os.environ.get("PATH", os.defpath)])
    passed = ("LANG", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
    kept = {k: v for k, v in os.environ.items() if k in passed or k.startswith(("PIP_", "UV_"))}
    return {**kept, "PATH": path, "HOME": str(home), "TMPDIR": str(home), "COLUMNS": "80"}


def _offline() -> list[str]:
    """What takes the network from a command; nothing where this machine cannot."""
    prefix = ["unshare", "--net", "--"]
    able = (
        shutil.which("unshare")
        and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    )
    return prefix if able else []


def main() -> int:
    """Play it; gives the exit code."""
    started, offline = time.monotonic(), _offline()
    with tempfile.TemporaryDirectory(prefix="ten-minutes-") as folder:
        bare, checkout = Path(folder) / "bare.git", Path(folder) / "judgecal"
        subprocess.run(["git", "clone", "--quiet", "--bare", str(ROOT), str(bare)], check=True)
        subprocess.run(["git", "clone", "--quiet", str(bare), str(checkout)], check=True)
        env = _environment(Path(folder) / "home", checkout)
        took = {}
        for name in ("make demo", *PAGES):
            began = time.monotonic()
            print(f"== {name}", flush=True)
            if name == "make demo":
                argv, at = ["make", "demo", f"PYTHON={sys.executable}"], checkout
            else:
                at = Path(folder) / Path(name).stem
                at.mkdir()
                (at / "examples").symlink_to(checkout / "examples")
                argv = [*offline, "sh", "-c", script((checkout / name).read_text(encoding="utf-8"))]
            code = subprocess.run(argv, cwd=at, env=env, check=False).returncode
            took[name] = time.monotonic() - began
            if code:
                print(f"{name} failed")
                return 1
    whole = time.monotonic() - started
    print("\n" + "\n".join(f"{seconds:6.0f} s  {name}" for name, seconds in took.items()))
    print(
        f"{whole:6.0f} s  all of it, {'offline once installed' if offline else 'with a network'}; 600 s are "
        "allowed"
    )
    return int(whole > MOST_S)


if __name__ == "__main__":
    sys.exit(main())
