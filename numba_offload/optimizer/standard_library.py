"""Functions of the standard library that are Python code, and look at methods of objects that may be anybody's."""

from __future__ import annotations

import logging
import random
import types
from collections.abc import Mapping
from typing import Any

# Loggers

_LOGGERS = (logging.Logger, logging.RootLogger)
_Manager = logging.Manager
_LEVELS = {
    "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR,
    "critical": logging.CRITICAL,
}  # fmt: skip
_functions = {name: vars(logging)[name] for name in _LEVELS}
_classes = {cls: dict(vars(cls)) for cls in (*_LOGGERS, logging.Filterer, _Manager)}
_INSTANCE = frozenset({"_cache", "disabled", "handlers", "level", "parent", "_disable"})
"""Attributes that are asked for, and stand in the instances' own dicts."""
_LOOKUPS = frozenset({"__getattr__", "__getattribute__"})
_METHODS = frozenset({*_LEVELS, "isEnabledFor", "getEffectiveLevel", "manager", "disable"})
_DEEPEST = 100


def says_nothing(function: types.FunctionType | types.MethodType) -> bool:
    """Whether a function is the method of a logger, or logs to the root, at a level that is switched off."""
    if type(function) is types.MethodType and type(function.__func__) is types.FunctionType:
        name = function.__func__.__name__
        if name not in _LEVELS or function.__func__ is not _classes[_LOGGERS[0]][name]:
            return False
        logger: Any = function.__self__
    elif type(function) is types.FunctionType and function is _functions.get(function.__name__):
        name, logger = function.__name__, logging.root
        # Without a handler it makes one, before it asks the logger.
        if type(logger) not in _LOGGERS or type(vars(logger).get("handlers")) is not list or not logger.handlers:
            return False
    else:
        return False
    return _is_plain_logger(logger) and not logger.isEnabledFor(_LEVELS[name])


def _is_plain_logger(logger: Any) -> bool:
    """Whether a logger runs nobody's code to find out whether it is switched off."""
    for cls, as_it_was in _classes.items():
        now = vars(cls)
        if any(now.get(name) is not value for name, value in as_it_was.items()):
            return False
        if not (now.keys() - as_it_was.keys()).isdisjoint(_INSTANCE | _LOOKUPS | _METHODS):
            return False
    one, depth = logger, 0
    while one is not None:
        if type(one) not in _LOGGERS or depth > _DEEPEST:
            return False
        own = vars(one)
        cache = own.get("_cache")
        if type(cache) is not dict or not all(type(level) is int and type(on) is bool for level, on in cache.items()):
            return False
        if type(own.get("level")) is not int or type(own.get("disabled")) not in (bool, int):
            return False
        if not own.keys().isdisjoint(_METHODS - {"manager"}):
            return False
        one, depth = own.get("parent"), depth + 1
    manager = vars(logger).get("manager", vars(_LOGGERS[0])["manager"])
    return type(manager) is _Manager and type(vars(manager).get("_disable")) is int


# Random numbers

_OF_NUMBERS = frozenset({
    "betavariate", "expovariate", "gammavariate", "gauss", "getrandbits", "lognormvariate", "normalvariate", "paretovariate",
    "randbytes", "randint", "random", "randrange", "seed", "triangular", "uniform", "vonmisesvariate", "weibullvariate",
})  # fmt: skip
_OF_SEQUENCES = frozenset({"choice", "choices", "sample", "shuffle"})
Random = random.Random
_random_class = dict(vars(Random))


def draws(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], scalars: frozenset[type]) -> bool:
    """Whether a function is a method of a generator of the ``random`` module, for numbers or a sequence of Python's."""
    owner = function.__self__
    if type(owner) is not Random or not vars(owner).keys() <= {"gauss_next"}:
        return False
    now = vars(Random)
    if len(now) != len(_random_class) or any(now.get(name) is not value for name, value in _random_class.items()):
        return False
    if type(function) is types.MethodType and type(function.__func__) is not types.FunctionType:
        return False
    name = function.__name__
    if type(function) is types.MethodType and _random_class.get(name) is not function.__func__:
        return False
    if any(type(value) not in scalars for value in kwargs.values()):
        return False
    if name in _OF_SEQUENCES and args:
        sequence = (list,) if name == "shuffle" else (tuple, list, range, str)
        return type(args[0]) in sequence and all(type(value) in scalars for value in args[1:])
    return name in _OF_NUMBERS and all(type(value) in scalars for value in args)
