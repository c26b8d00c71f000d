"""Starts command lines in forked children: `python -m judgecal` without the seconds of imports before it.

A line of JSON on stdin is one command: `argv`, `cwd`, `env`, `out` and `err` (files), `limit_bytes` (of any
file it writes, in place of a full disk). The child's process id comes back at once and its exit code when it
has ended. A child is a process of its own, in a session of its own, and can be killed like any other.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import threading
import traceback
from typing import Any

PRELOADED = (
    "judgecal.cli", "judgecal.experiment.score", "judgecal.goldset", "judgecal.judges", "judgecal.report",
    "judgecal.stats", "dspy.lm15", "aiohttp",
)  # fmt: skip


def main() -> None:
    """Fork a child for every line until stdin closes."""
    # The first Ctrl-C belongs to the children; each has its own handler again.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    for name in PRELOADED:
        importlib.import_module(name)
    say = threading.Lock()
    _tell(say, {"ready": True, "threads": threading.active_count()})
    for line in sys.stdin:
        command = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(command)
        _tell(say, {"pid": child})
        _, status, used = os.wait4(child, 0)
        _tell(say, {"code": os.waitstatus_to_exitcode(status), "peak_mb": used.ru_maxrss / 1024})


def _tell(say: threading.Lock, message: dict[str, Any]) -> None:
    with say:
        print(json.dumps(message), flush=True)


def _become(command: dict[str, Any]) -> None:
    """The child: the command line, with its own files, folder and environment; never returns."""
    code = 70
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for name, number in (("out", 1), ("err", 2)):
            target = os.open(command[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(target, number)
            os.close(target)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(command["cwd"])
        os.environ.update(command["env"])
        if command.get("limit_bytes"):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (command["limit_bytes"],) * 2)
        code = _run(command)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:  # noqa: BLE001 - what python itself would do with it
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(command: dict[str, Any]) -> int:
    from judgecal.cli import run

    return run(command["argv"])


if __name__ == "__main__":
    main()
