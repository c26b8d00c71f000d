"""Selection: choose a judge by a stated loss, confirm it once, lock it, and notice when it changes."""

from judgecal.selection.choice import Caps, repeats_of
from judgecal.selection.lock import (
    FittedThreshold,
    Lock,
    LockedGold,
    LockedModel,
    LockedSignature,
    Noise,
    answer_settings,
    load_lock,
    reply_fingerprint,
    write_lock,
)
from judgecal.selection.select import MARGIN, SelectRun, select_config

__all__ = [
    "MARGIN",
    "Caps",
    "FittedThreshold",
    "Lock",
    "LockedGold",
    "LockedModel",
    "LockedSignature",
    "Noise",
    "SelectRun",
    "answer_settings",
    "load_lock",
    "repeats_of",
    "reply_fingerprint",
    "select_config",
    "write_lock",
]
