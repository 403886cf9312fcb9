"""Local phishing lists: the one in the package, the operator's own, and those fetched in the background."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from centgate.environment import PREFIX
from centgate.phishing.collection import CollectionVerdict, LoadedList
from centgate.phishing.homograph import mixes_scripts
from centgate.phishing.rules import InvalidPhishingList
from centgate.phishing.store import ListFolder, ListStore
from centgate.phishing.url import WebAddress
from centgate.provider import Provider, ProviderInfo
from centgate.settings import Settings

if TYPE_CHECKING:
    from centgate.resources import Resources

STALE_DAYS = 30
"""Days after which a list is reported as old; wallets refresh theirs as often."""


class PhishingList(Provider):
    """Lists of known phishing domains, known good ones, and names that are imitated. No network."""

    info = ProviderInfo(
        "phishinglist",
        "phishing lists (local snapshots)",
        docs_url="https://github.com/MetaMask/eth-phishing-detect",
        resale="permitted",
        terms="Each list has a licence of its own (DBAD, Apache-2.0, MIT, GPL-3.0), which the answer names; "
        "answers are verdicts, not the lists.",
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        self.store = _open_store(settings)
        # a provider that only validates the settings does not need the fetched lists
        if resources is not None:
            self.store.reload()

    def check_address(self, address: WebAddress) -> CollectionVerdict:
        """Check an address against the lists; warn of old lists, lookalike characters and mixed scripts."""
        lists = self.store.collection.lists
        lead = lists[0].header
        self.record_status("ok", list=lead.source, version=lead.version, date=lead.date)
        self._warn_of_age(lists)
        verdict = self.store.collection.check(address)
        if verdict.homograph_of:
            self.trace.add_warning(
                f"{address.unicode_domain} ({address.domain}) contains lookalike characters "
                f"that imitate {verdict.homograph_of}"
            )
        elif verdict.risk != "low" and mixes_scripts(address.unicode_domain):
            self.trace.add_warning(
                f"{address.unicode_domain} ({address.domain}) mixes letters of scripts that look alike, "
                "as names do that imitate others"
            )
        return verdict

    def _warn_of_age(self, lists: Sequence[LoadedList]) -> None:
        lead, *others = lists
        if _is_old(lead):
            self.trace.add_warning(
                f"the phishing list {_describe_age(lead)}; newer phishing sites are missing, "
                "so `unknown` is weak evidence"
            )
        if old := [f"{each.name} {_describe_age(each)}" for each in others if _is_old(each)]:
            self.trace.add_warning(f"other phishing lists miss newer sites: {', '.join(old)}")


def _is_old(loaded: LoadedList) -> bool:
    age = loaded.age_days()
    return age is None or age > STALE_DAYS


def _describe_age(loaded: LoadedList) -> str:
    age = loaded.age_days()
    return f"is {age:,} days old" if age is not None else "has no date"


def _open_store(settings: Settings) -> ListStore:
    """Open the lists. Raises ValueError with the setting's name if the operator's own list cannot be read."""
    try:
        return ListStore(ListFolder(settings.phishing_folder), settings.phishing_list)
    except OSError as error:
        problem = f"cannot read {settings.phishing_list}: {error.strerror}"
    except InvalidPhishingList as error:
        problem = str(error)
    raise ValueError(f"{PREFIX}PHISHING_LIST: {problem}")
