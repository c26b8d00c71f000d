"""What a worker process of the embedded model runs: requests in by one pipe, replies out by the other.

Started by path and not as a module of the engine, so that a worker loads the model alone.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from typing import Any, BinaryIO

__all__ = ["HELLO", "LENGTH_BYTES", "serve"]

HELLO = b"judgecal worker\n"
LENGTH_BYTES = 8


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer batches until the pipe is closed, which also happens when the parent is killed.

    A batch is a list of (messages in front, or None for the same as before; content of the last message).
    """
    from judgecal.models.embedded import reply

    replies.write(HELLO)
    replies.flush()
    prefix: list[Any] = []
    while len(head := requests.read(LENGTH_BYTES)) == LENGTH_BYTES:
        answers = []
        for changed, content in pickle.loads(requests.read(int.from_bytes(head, "big"))):
            prefix = prefix if changed is None else changed
            start = time.perf_counter()
            text = reply([*prefix, {"role": "user", "content": content}])
            answers.append((text, time.perf_counter() - start))
        data = pickle.dumps(answers, protocol=pickle.HIGHEST_PROTOCOL)
        replies.write(len(data).to_bytes(LENGTH_BYTES, "big") + data)
        replies.flush()


def _main() -> None:
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not get into the replies
    try:
        serve(requests, replies)
    except BrokenPipeError:
        sys.exit(0)  # the parent is gone


if __name__ == "__main__":
    _main()
