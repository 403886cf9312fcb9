"""Find names that differ from a protected one by a few letters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Target: TypeAlias = "tuple[str, str]"
"""The compared form, and the name that it represents."""


class LookalikeIndex:
    """Protected names, indexed for comparison. With a tolerance of zero nothing imitates them."""

    def __init__(self, protected: Iterable[Target], tolerance: int) -> None:
        self.tolerance = tolerance
        self.by_length: dict[int, list[Target]] = {}
        # a distance is at least the difference in length, so most names need not be compared
        for target in protected if tolerance > 0 else ():
            length = len(target[0])
            for length_in_range in range(max(0, length - tolerance), length + tolerance + 1):
                self.by_length.setdefault(length_in_range, []).append(target)

    def find_imitated(self, domain: str) -> str | None:
        """Return the first protected name, in list order, that the domain resembles."""
        from rapidfuzz.distance.Levenshtein import distance  # late, see `runtime.LATE_MODULES`

        form = comparable_part(domain)
        tolerance = self.tolerance
        for target, name in self.by_length.get(len(form), ()):
            if distance(form, target, score_cutoff=tolerance) <= tolerance:
                return name
        return None


def comparable_part(domain: str) -> str:
    """Return the compared part of a domain: without the last label and without a leading `www.`."""
    return strip_last_label(domain).removeprefix("www.")


def strip_last_label(name: str) -> str:
    """Return the compared part of a protected name: all but the last label."""
    return name.rpartition(".")[0]
