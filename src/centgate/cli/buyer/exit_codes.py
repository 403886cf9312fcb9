"""Error messages and exit codes of the client's commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Literal, ParamSpec

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from centgate.cli.buyer.arguments import InvalidArguments
from centgate.cli.setting_errors import describe_value
from centgate.cli.terminal import discard_stdout, print_message
from centgate.client.errors import (
    AddressRefused,
    BuyerError,
    CapExceeded,
    InvalidInput,
    LedgerUnwritable,
    NoData,
    NoNode,
    NotFound,
    NoWallet,
    PaymentRefused,
    TermsRefused,
    UnsupportedOptions,
    WalletUnreadable,
)
from centgate.client.settings import BuyerSettings
from centgate.client.wallet import Wallet
from centgate.json_schema import InvalidSchema

ExitCode = Literal[0, 1, 2, 3, 4, 5, 6, 130]
P = ParamSpec("P")

WRONG_INPUT = (AddressRefused, InvalidInput, NotFound, NoNode, UnsupportedOptions)
REFUSED = (CapExceeded, LedgerUnwritable, NoWallet, PaymentRefused, TermsRefused, WalletUnreadable)

NOT_MOVED_STATES = ("not_moved", "reported_not_moved")
"""States of `money` in which no money moved, as verified by this client or reported by the API."""


_OPTIONS: Mapping[str, str] = {
    "api_url": "--api",
    "cap_per_call": "--max-price",
    "networks": "--network",
    "wallet": "--path",
    "wallet_rpc": "--rpc",
}
"""Options of the commands by the setting that they replace."""


class InvalidSettings(Exception):
    """Invalid settings; `problems` lists every problem."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def reports_errors(command: Callable[P, ExitCode]) -> Callable[P, ExitCode]:
    """Decorator: print a command's errors on standard error and return an exit code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> ExitCode:
        try:
            return command(*args, **kwargs)
        except (InvalidArguments, InvalidSettings) as error:
            for problem in error.problems:
                print_message(problem)
            return 2
        except KeyboardInterrupt:
            print_message("stopped: no payment was signed")
            return 130
        except BuyerError as error:
            for sentence in (str(error), *getattr(error, "__notes__", ())):
                print_message(sentence)
            return exit_code(error)
        except InvalidSchema as error:
            print_message(f"the API has a schema that is not in the Centgate format: {error}")
            return 1
        except OSError as error:
            print_message(f"input or output failed: {error.strerror or error}")
            discard_stdout()
            return 1

    return run


def exit_code(error: BuyerError) -> ExitCode:
    """Return the exit code of an error; whether money may have moved takes precedence."""
    if isinstance(error, NoData):
        return 3
    if isinstance(error, PaymentRefused) and error.money == "moved":
        return 6
    if error.money not in NOT_MOVED_STATES:
        return 5
    if isinstance(error, WRONG_INPUT):
        return 2
    return 4 if isinstance(error, REFUSED) else 1


def read_buyer_settings(**overrides: Any) -> BuyerSettings:
    """Read the client's settings, overridden by command-line values that are not None.

    A wallet on the command line is that of the command, whatever key the environment holds.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    if "wallet" in given:
        given["wallet_key"] = None
    try:
        return BuyerSettings(**given)
    except ValidationError as error:
        raise InvalidSettings([_describe_problem(each, given) for each in error.errors()]) from None


def require_wallet(settings: BuyerSettings) -> Wallet:
    """Return the wallet of the settings. Raises NoWallet, and WalletUnreadable."""
    wallet = settings.open_wallet()
    if wallet is None:
        raise NoWallet(f"there is no wallet: make one with `centgate wallet new` ({settings.wallet})")
    return wallet


def _describe_problem(problem: ErrorDetails, given: Mapping[str, Any]) -> str:
    """Describe an invalid setting by the option that set it, else by its variable."""
    if not problem["loc"]:
        return describe_value(problem)
    name = str(problem["loc"][0])
    source = _OPTIONS[name] if name in given and name in _OPTIONS else f"CENTGATE_{name.upper()}"
    return f"{source}: {describe_value(problem)}"
