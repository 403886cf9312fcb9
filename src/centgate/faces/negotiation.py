"""What a client would rather have: the `Accept` header, read as RFC 9110 section 12.5.1 says."""

from __future__ import annotations


def prefers(accept: str, wanted: str, default: str) -> bool:
    """Whether `wanted`, a media type, is named in `Accept` and liked better than `default`."""
    liked = _liked(accept)
    return wanted in liked and liked[wanted] > _quality(liked, default)


def named(accept: str, offered: tuple[str, ...], default: str) -> str:
    """Of the types offered, the first that is named and that nothing is liked better than; else the default.

    Who names a type that browsers do not know means it, even beside others.
    """
    liked = _liked(accept)
    most = max(_quality(liked, each) for each in (*offered, default))
    return next((each for each in offered if 0 < liked.get(each, 0) == most), default)


def _liked(accept: str) -> dict[str, float]:
    """The quality of each range that is named."""
    liked: dict[str, float] = {}
    for part in accept.lower().split(","):
        media_range, *parameters = (piece.strip() for piece in part.split(";"))
        weights = [each[2:] for each in parameters if each.startswith("q=")]
        liked[media_range] = _weight(weights[0]) if weights else 1.0
    return liked


def _weight(text: str) -> float:
    """A quality between 0 and 1; what is no number is no liking."""
    try:
        weight = float(text)
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0


def _quality(liked: dict[str, float], media_type: str) -> float:
    """How a type is liked that may be named only by a range."""
    family = media_type.partition("/")[0] + "/*"
    return next((liked[each] for each in (media_type, family, "*/*") if each in liked), 0.0)
