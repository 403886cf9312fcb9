"""How a buyer's command ends: an error as one sentence, and the exit code that goes with it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, ParamSpec

from pydantic import ValidationError

from centgate.client.errors import (
    AddressRefused,
    BuyerError,
    CapExceeded,
    InvalidInput,
    LedgerUnwritable,
    NoData,
    NotFound,
    NoWallet,
    PaymentRefused,
    TermsRefused,
    UnsupportedOptions,
    WalletUnreadable,
)
from centgate.client.settings import BuyerSettings
from centgate.client.shell.arguments import BadArguments
from centgate.client.shell.printing import plain, write_nowhere

ExitCode = Literal[0, 1, 2, 3, 4, 5, 130]
P = ParamSpec("P")

WRONG_INPUT = (AddressRefused, InvalidInput, NotFound, UnsupportedOptions)
REFUSED = (CapExceeded, LedgerUnwritable, NoWallet, PaymentRefused, TermsRefused, WalletUnreadable)

UNMOVED = ("not_moved", "reported_not_moved")
"""Words on the money that do not say that it moved or may have: known here, or the API's word."""


class BadSettings(Exception):
    """What is set cannot be; `problems` are sentences, all of them."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def told(command: Callable[P, ExitCode]) -> Callable[P, ExitCode]:
    """A command whose errors end in sentences on standard error, and in an exit code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> ExitCode:
        try:
            return command(*args, **kwargs)
        except (BadArguments, BadSettings) as error:
            for problem in error.problems:
                say(problem)
            return 2
        except KeyboardInterrupt:
            say("stopped: nothing was signed")
            return 130
        except BuyerError as error:
            for sentence in (str(error), *getattr(error, "__notes__", ())):
                say(sentence)
            return exit_code(error)
        except OSError as error:
            say(f"input or output failed: {error.strerror or error}")
            write_nowhere()
            return 1

    return run


def exit_code(error: BuyerError) -> ExitCode:
    """The exit code of an error, which says first of all whether money may have moved."""
    if isinstance(error, NoData):
        return 3
    if error.money not in UNMOVED:
        return 5
    if isinstance(error, WRONG_INPUT):
        return 2
    return 4 if isinstance(error, REFUSED) else 1


def say(sentence: str) -> None:
    """A sentence for who runs the command, beside its output."""
    sys.stderr.write(f"centgate: {plain(sentence)}\n")


def settings_given(**given: Any) -> BuyerSettings:
    """The buyer's settings with what the command line says in their place; None is what it does not say."""
    try:
        return BuyerSettings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise BadSettings(
            [
                f"CENTGATE_{str(found['loc'][0]).upper()}: {found['msg'].removeprefix('Value error, ')}"
                for found in error.errors()
            ]
        ) from None
