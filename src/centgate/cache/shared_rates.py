"""Turns at an upstream that several servers share: the rate is kept by all of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from centgate.cache.shared import Shared
    from centgate.upstream import Rate

MICROSECONDS = 1_000_000

RESERVE = """
-- What upstream.Pace does, by this server's clock.
-- KEYS: turns, in microseconds, the latest last. All times are microseconds.
-- ARGV: calls, calls at once, span, gap between the calls after those, patience, the least wait.
-- Gives the wait until the turn, which is taken unless that is beyond patience.
local calls, at_once, span = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local gap, patience, least = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local function turn(nth_last) return tonumber(redis.call('LINDEX', KEYS[1], -nth_last)) end

local last = turn(1)
if last and last > now + 2 * math.max(span, patience, 60000000) then
  -- nobody waits that long for a turn: the clock was set back
  redis.call('DEL', KEYS[1])
  last = nil
end
local due = now + least
if last then
  due = math.max(due, last)
  local full, oldest = turn(at_once), turn(calls)
  if full and full > now - span then due = math.max(due, last + gap) end
  if oldest then due = math.max(due, oldest + span) end
end
if due - now <= patience then
  redis.call('RPUSH', KEYS[1], string.format('%.0f', due))
  redis.call('LTRIM', KEYS[1], -calls, -1)
  redis.call('PEXPIRE', KEYS[1], math.ceil((due - now + span) / 1000) + 1)
end
return due - now
"""


class SharedRate:
    """The turns of all servers at one upstream."""

    def __init__(self, shared: Shared, name: str, rate: Rate) -> None:
        self._shared = shared
        self._keys = (f"turns:{name}:{rate.calls}/{rate.seconds:g}",)
        self._rate = (rate.calls, rate.at_once, *(_whole(each) for each in (rate.seconds, rate.gap)))

    async def reserve(self, patience: float, least: float) -> float | None:
        """As `upstream.SharedTurns`."""
        arguments = (*self._rate, _whole(patience), _whole(least))
        wait: int | None = await self._shared.run(RESERVE, self._keys, arguments)
        return None if wait is None else wait / MICROSECONDS


def _whole(seconds: float) -> int:
    return round(seconds * MICROSECONDS)
