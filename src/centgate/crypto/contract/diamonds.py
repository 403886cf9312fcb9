"""Diamonds (EIP-2535): the functions that each facet serves, and the storage that all share. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from msgspec.structs import replace

from centgate.crypto.abi import WORD, parse_address_word, read_number
from centgate.crypto.contract.account_state import ChainState
from centgate.crypto.contract.code_analysis import CodeAnalysis, StorageVariable

LOUPE_CALL = "facets()"
"""Returns `(address,bytes4[])[]`, each facet with the functions that the diamond runs of it: IDiamondLoupe of
EIP-2535 (eips.ethereum.org/EIPS/eip-2535), also in npm's @solidstate/abi."""
FACETS_CALL = "facetAddresses()"
"""Returns the facets alone."""
CUT_FACET_CALL = "facetAddress(diamondCut)"
"""facetAddress(bytes4) of the function that upgrades a diamond."""
MAX_FACETS = 60
"""Facets that are looked at, of those that `facetAddresses` lists."""
DIAMOND_CUT = "diamondCut((address,uint8,bytes4[])[],address,bytes)"
"""Function that adds, replaces and removes functions: IDiamondCut of EIP-2535."""


def parse_facets(returned: bytes | None) -> dict[str, frozenset[bytes]]:
    """Return the selectors that each facet serves by its address, lower case; empty if that is unreadable."""
    facets: dict[str, frozenset[bytes]] = {}
    try:
        for address, selectors in _list_facets(returned or b""):
            facets[address] = facets.get(address, frozenset()) | selectors
    except ValueError:
        return {}
    return facets


def _list_facets(data: bytes) -> Iterator[tuple[str, frozenset[bytes]]]:
    """Yield facets with selectors; ValueError if the data is not in the published format.

    Hostile data may point at one long list of selectors from everywhere.
    """
    words_left = len(data) // WORD
    start = read_number(data, 0)
    count, first = read_number(data, start), start + WORD
    if count > words_left:
        raise ValueError("beyond the end of the data")
    for position in range(count):
        facet = first + read_number(data, first + position * WORD)
        listed = facet + read_number(data, facet + WORD)
        length = read_number(data, listed)
        words_left -= length
        if words_left < 0 or listed + WORD * (length + 1) > len(data):
            raise ValueError("beyond the end of the data")
        places = range(listed + WORD, listed + WORD * (length + 1), WORD)
        if address := parse_address_word(data[facet : facet + WORD]):
            yield address, frozenset(data[place : place + 4] for place in places)


def list_facets(state: ChainState) -> list[str]:
    """Return the facets that a diamond's loupe lists, without the diamond itself."""
    data = state.call_results.get((state.address, FACETS_CALL)) or b""
    count = min(count_facets(state), MAX_FACETS)
    words = (data[64 + 32 * each : 96 + 32 * each] for each in range(count))
    addresses = [
        address for word in words if (address := parse_address_word(word)) and address != state.address
    ]
    return list(dict.fromkeys(addresses))


def count_facets(state: ChainState) -> int:
    """Return the number of facets that a diamond's loupe lists; 0 if it does not return a list."""
    data = state.call_results.get((state.address, FACETS_CALL)) or b""
    count = int.from_bytes(data[32:64], "big") if data[:32] == (32).to_bytes(32, "big") else 0
    return count if count <= 1000 and len(data) >= 64 + 32 * count else 0


def restrict_functions(analysis: CodeAnalysis, served: Set[bytes]) -> CodeAnalysis:
    """Return the analysis of a facet with those functions alone that the diamond runs.

    A facet keeps the code of functions that were removed from the diamond, or moved to another facet.
    """
    return replace(
        analysis,
        functions=tuple(each for each in analysis.functions if each.selector in served),
        storage=tuple(
            replace(each, readers=each.readers & served, writers=each.writers & served)
            for each in analysis.storage
        ),
    )


def share_storage(analyses: Sequence[CodeAnalysis]) -> list[CodeAnalysis]:
    """Return the analyses of codes that run on one storage, each with what all show of its own variables.

    These get the functions of all codes that read or write them, and are addresses if any code shows one. The
    variables of other codes are left out: each of a diamond's facets may have a thousand.
    """
    readers: dict[tuple[str, int], set[bytes]] = {}
    writers: dict[tuple[str, int], set[bytes]] = {}
    addresses: set[tuple[str, int]] = set()
    for each in (each for analysis in analyses for each in analysis.storage):
        place = each.slot, each.offset
        readers.setdefault(place, set()).update(each.readers)
        writers.setdefault(place, set()).update(each.writers)
        if each.type == "address":
            addresses.add(place)

    def merge(own: StorageVariable) -> StorageVariable:
        place = own.slot, own.offset
        return StorageVariable(
            own.slot,
            own.offset,
            "address" if place in addresses else own.type,
            frozenset(readers[place]),
            frozenset(writers[place]),
        )

    return [replace(analysis, storage=tuple(map(merge, analysis.storage))) for analysis in analyses]
