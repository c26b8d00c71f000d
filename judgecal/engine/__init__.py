"""The engine: the one place that calls a model, for judges, answerers and optimisers alike."""

from judgecal.engine.budget import Budget, Purse, counted_remark, require_prices, worst_cost_usd
from judgecal.engine.cache import ReplyCache, cache_folder, open_cache
from judgecal.engine.call_runner import CallRunner, Outcome, Policy
from judgecal.engine.calls import Call, CallFailed, Message, OwnVerdict, Reading, Reply
from judgecal.engine.journal import Journal, LongJournal, read_journal
from judgecal.engine.ledger import Ledger
from judgecal.engine.limits import Limiter, expected_seconds
from judgecal.engine.log import held
from judgecal.engine.replies import read_guarded
from judgecal.engine.reply_schema import ReplySchema
from judgecal.engine.run import Progress, run_calls, take_verdicts
from judgecal.engine.scheduler import Places

__all__ = [
    "Budget",
    "Call",
    "CallFailed",
    "CallRunner",
    "Journal",
    "Ledger",
    "Limiter",
    "LongJournal",
    "Message",
    "Outcome",
    "OwnVerdict",
    "Places",
    "Policy",
    "Progress",
    "Purse",
    "Reading",
    "Reply",
    "ReplyCache",
    "ReplySchema",
    "cache_folder",
    "counted_remark",
    "expected_seconds",
    "held",
    "open_cache",
    "read_guarded",
    "read_journal",
    "require_prices",
    "run_calls",
    "take_verdicts",
    "worst_cost_usd",
]
