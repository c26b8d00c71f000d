"""`judgecal`, the console script, and `python -m judgecal`."""

from __future__ import annotations

import contextlib
import os
import sys


def main() -> None:
    """Run the command line; an installation that cannot be loaded ends in 70, as 1 is what a failed gate ends
    in."""
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
