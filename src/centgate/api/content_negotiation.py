"""Content negotiation by `Accept` and `Accept-Encoding` (RFC 9110, sections 12.5.1 and 12.5.3)."""

from __future__ import annotations


def is_preferred(accept: str, media_type: str, default: str) -> bool:
    """Return True if `Accept` names the media type `media_type` with a higher quality than `default`."""
    qualities = _parse_accept(accept)
    return media_type in qualities and qualities[media_type] > _quality_of(qualities, default)


def choose_named_type(accept: str, offered: tuple[str, ...], default: str) -> str:
    """Return the first offered type that `Accept` names with the highest quality, else the default.

    A client that names a type unknown to browsers wants it, even if it names others with equal quality.
    """
    qualities = _parse_accept(accept)
    best = max(_quality_of(qualities, each) for each in (*offered, default))
    return next((each for each in offered if 0 < qualities.get(each, 0) == best), default)


def accepts_encoding(accept_encoding: str, coding: str) -> bool:
    """Return True if `Accept-Encoding` names a coding, or `*`, with a quality above 0."""
    qualities = _parse_accept(accept_encoding)
    return qualities.get(coding, qualities.get("*", 0.0)) > 0


def _parse_accept(accept: str) -> dict[str, float]:
    """Parse `Accept` or `Accept-Encoding` into the quality of each range or coding."""
    qualities: dict[str, float] = {}
    for part in accept.lower().split(","):
        media_range, *parameters = (piece.strip() for piece in part.split(";"))
        weights = [each[2:] for each in parameters if each.startswith("q=")]
        qualities[media_range] = _parse_weight(weights[0]) if weights else 1.0
    return qualities


def _parse_weight(text: str) -> float:
    """Parse a quality between 0 and 1; invalid values count as 0."""
    try:
        weight = float(text)
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0


def _quality_of(qualities: dict[str, float], media_type: str) -> float:
    """Return the quality of a media type, by its most specific matching range; 0 if none matches."""
    family = media_type.partition("/")[0] + "/*"
    return next((qualities[each] for each in (media_type, family, "*/*") if each in qualities), 0.0)
