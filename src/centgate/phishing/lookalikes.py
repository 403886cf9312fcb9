"""Names that differ from a protected one by a few letters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from rapidfuzz.distance.Levenshtein import distance

Target: TypeAlias = "tuple[str, str]"
"""The form that is compared, and the name it stands for."""


class Lookalikes:
    """Protected names, ready to be compared; with a tolerance of zero nothing imitates them."""

    def __init__(self, protected: Iterable[Target], tolerance: int) -> None:
        self.tolerance = tolerance
        self.by_length: dict[int, list[Target]] = {}
        # a distance is at least the difference in length, so most names need not be compared
        for target in protected if tolerance > 0 else ():
            length = len(target[0])
            for near in range(max(0, length - tolerance), length + tolerance + 1):
                self.by_length.setdefault(near, []).append(target)

    def imitated_by(self, domain: str) -> str | None:
        """The first protected name, in the order of the list, that the domain could be taken for."""
        form = compared(domain)
        tolerance = self.tolerance
        for target, name in self.by_length.get(len(form), ()):
            if distance(form, target, score_cutoff=tolerance) <= tolerance:
                return name
        return None


def compared(domain: str) -> str:
    """What is compared of a domain: neither the last label nor a leading `www.`."""
    return form(domain).removeprefix("www.")


def form(name: str) -> str:
    """What is compared of a protected name: all but the last label."""
    return name.rpartition(".")[0]
