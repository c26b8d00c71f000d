"""The engine: the one place that calls a model, for judges, answerers and optimisers alike."""

from judgecal.engine.budget import Budget, BudgetGate, counted_remark, require_prices, worst_cost_usd
from judgecal.engine.cache import ReplyCache, cache_folder, open_cache
from judgecal.engine.call_runner import CallResult, CallRunner, Policy
from judgecal.engine.calls import (
    Call,
    CallFailed,
    Message,
    OwnVerdict,
    ParsedReply,
    Reply,
    ReplySchema,
    read_guarded,
)
from judgecal.engine.log import Journal, log_lock, read_journal
from judgecal.engine.run import Progress, run_calls, take_verdicts
from judgecal.engine.scheduler import CallSlots, Limiter

__all__ = [
    "Budget", "BudgetGate", "Call", "CallFailed", "CallResult", "CallRunner", "CallSlots", "Journal",
    "Limiter", "Message", "OwnVerdict", "ParsedReply", "Policy", "Progress", "Reply",
    "ReplyCache", "ReplySchema", "cache_folder", "counted_remark", "log_lock", "open_cache",
    "read_guarded", "read_journal", "require_prices", "run_calls", "take_verdicts", "worst_cost_usd",
]  # fmt: skip
