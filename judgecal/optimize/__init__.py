"""Optimise a judge: compile on train, choose on dev, confirm once on test."""

import sys
from types import ModuleType

from judgecal.optimize.run import optimize


class _Called(ModuleType):
    """`judgecal.optimize(...)`: Python sets a package on its parent by name, so the package is called."""

    __call__ = staticmethod(optimize)


sys.modules[__name__].__class__ = _Called
