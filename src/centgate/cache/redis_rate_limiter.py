"""Rate limiter in Redis: several servers keep the rate of an upstream together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from centgate.cache.redis import SharedRedis
    from centgate.rate_limiter import RateLimit

MICROSECONDS = 1_000_000

ACQUIRE_SCRIPT = """
-- The algorithm of the sliding window in Python, with the clock of the Redis server.
-- KEYS: list of reserved times in microseconds, the latest last. All times are microseconds.
-- ARGV: calls, calls at once, span, gap between the calls after those, maximum wait, minimum wait.
-- Returns the wait until the next slot, which is reserved unless the wait exceeds the maximum.
local calls, at_once, span = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local gap, max_wait, min_wait = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local function slot(nth_last) return tonumber(redis.call('LINDEX', KEYS[1], -nth_last)) end

local last = slot(1)
if last and last > now + 2 * math.max(span, max_wait, 60000000) then
  -- no caller waits that long: the clock was set back
  redis.call('DEL', KEYS[1])
  last = nil
end
local due = now + min_wait
if last then
  due = math.max(due, last)
  local full, oldest = slot(at_once), slot(calls)
  if full and full > now - span then due = math.max(due, last + gap) end
  if oldest then due = math.max(due, oldest + span) end
end
if due - now <= max_wait then
  redis.call('RPUSH', KEYS[1], string.format('%.0f', due))
  redis.call('LTRIM', KEYS[1], -calls, -1)
  redis.call('PEXPIRE', KEYS[1], math.ceil((due - now + span) / 1000) + 1)
end
return due - now
"""


class RedisRateLimiter:
    """Rate limiter of all servers for one upstream."""

    def __init__(self, shared: SharedRedis, name: str, rate: RateLimit) -> None:
        self._shared = shared
        self._keys = (f"turns:{name}:{rate.calls}/{rate.seconds:g}",)
        self._rate = (
            rate.calls,
            rate.burst,
            *(_to_microseconds(each) for each in (rate.seconds, rate.interval)),
        )

    async def acquire(self, max_wait: float, min_wait: float) -> float | None:
        """Reserve the next slot; return the wait in seconds, None while Redis is unavailable."""
        arguments = (*self._rate, _to_microseconds(max_wait), _to_microseconds(min_wait))
        wait: int | None = await self._shared.run_script(ACQUIRE_SCRIPT, self._keys, arguments)
        return None if wait is None else wait / MICROSECONDS


def _to_microseconds(seconds: float) -> int:
    return round(seconds * MICROSECONDS)
