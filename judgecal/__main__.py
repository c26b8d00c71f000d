"""`judgecal`, the console script, and `python -m judgecal`."""

from __future__ import annotations

import contextlib
import os
import sys


def main() -> None:
    """Run the command line; exit 70 where the installation cannot be loaded, as 1 means a failed gate."""
    try:
        from judgecal.cli import main as command_line
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - whatever it is
        message = f"judgecal: it cannot be loaded ({type(error).__name__}: {error}): reinstall it\n"
        with contextlib.suppress(OSError):  # stderr may be closed
            os.write(2, message.encode("utf-8", "backslashreplace"))
        sys.exit(70)
    command_line()


if __name__ == "__main__":
    main()
