"""The atomic steps by which Redis is made equal to the database again."""

from typing import Final

from attune.pipeline.queues.redis.lua import GUARD, NAMES, ORDER, PREFIX, STATES, script

REBUILDING: Final = f"{PREFIX}rebuilding"

_LOCK: Final = f"local LOCK = '{REBUILDING}'"

_PUT: Final = """
local function put(id, state, text, event)
  local place = read_place(id, text)
  redis.call('HSET', PLACES, id, text)
  redis.call('SET', EVENT .. id, event, 'EX', EVENT_SECONDS)
  if state == 'queued' then
    redis.call('ZADD', of(PENDING, place.lane), lane_score(place), id)
    return place
  end
  if place.lane ~= '' then redis.call('SADD', of(ACTIVE, place.lane), id) end
  if state == 'ready' then
    redis.call('ZADD', PENDING, system_score(place), id)
  else
    redis.call('SADD', ACTIVE, id)
  end
  return place
end
"""

# 1 if Redis holds everything that it should.
IS_WHOLE: Final = script("is_whole", NAMES, GUARD, "return 1")

# Arguments: token, milliseconds, and 1 to begin even if nothing is missing. 1 if the rebuild is ours now, and nobody is
# served from then on; 2 if there is nothing to do, because somebody else has done it meanwhile.
BEGIN: Final = script(
    "begin",
    NAMES,
    _LOCK,
    """
if redis.call('EXISTS', WHOLE) == 1 and ARGV[3] ~= '1' then return 2 end
local owner = redis.call('GET', LOCK)
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', LOCK, ARGV[1], 'PX', ARGV[2])
redis.call('DEL', WHOLE)
return 1
""",
)

# Arguments: token, milliseconds, then id, state, place and event of each. 0 if the rebuild is not ours any more.
LOAD: Final = script(
    "load",
    NAMES,
    _LOCK,
    _PUT,
    """
if redis.call('GET', LOCK) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', LOCK, ARGV[2])
for i = 3, #ARGV, 4 do
  put(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3])
end
return 1
""",
)

# Argument: token. 1 if the rebuild was ours to the end; from then on everybody is served.
VOUCH: Final = script(
    "vouch",
    NAMES,
    _LOCK,
    """
if redis.call('GET', LOCK) ~= ARGV[1] then return 0 end
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
redis.call('SET', WHOLE, run .. ':' .. ARGV[1])
redis.call('DEL', LOCK)
return 1
""",
)

# Arguments: lanes. Depth, active count and first of each; an empty word for none.
LOOK: Final = script(
    "look",
    NAMES,
    GUARD,
    STATES,
    ORDER,
    """
local function head_of(lane)
  local first = redis.call('ZRANGE', of(PENDING, lane), 0, 0, 'WITHSCORES')
  if lane ~= '' or not first[1] then return first[1] or '' end
  local places = places_of(redis.call('ZRANGE', PENDING, first[2], first[2], 'BYSCORE'), PENDING)
  table.sort(places, before)
  return places[1] and places[1].id or ''
end

local found = {}
for _, lane in ipairs(ARGV) do
  found[#found + 1] = redis.call('ZCARD', of(PENDING, lane))
  found[#found + 1] = redis.call('SCARD', of(ACTIVE, lane))
  found[#found + 1] = head_of(lane)
end
return found
""",
)

# Argument: a lane. The marker, and how often the lane was changed since it was set.
SEEN: Final = script(
    "seen",
    NAMES,
    GUARD,
    "return {redis.call('GET', WHOLE), redis.call('HGET', CHANGES, ARGV[1]) or ''}",
)

# Arguments: lane, where to build, then id, state, place and event of each: builds beside what is in use.
STAGE: Final = script(
    "stage",
    NAMES,
    GUARD,
    """
local lane, base = ARGV[1], ARGV[2]
local waits = lane == '' and 'ready' or 'queued'
local score = lane == '' and system_score or lane_score
for i = 3, #ARGV, 4 do
  local id, place = ARGV[i], read_place(ARGV[i], ARGV[i + 2])
  redis.call('HSET', PLACES, id, ARGV[i + 2])
  redis.call('SET', EVENT .. id, ARGV[i + 3], 'EX', EVENT_SECONDS)
  if ARGV[i + 1] == waits then
    redis.call('ZADD', base .. ':pending', score(place), id)
  else
    redis.call('SADD', base .. ':active', id)
  end
end
redis.call('EXPIRE', base .. ':pending', 3600)
redis.call('EXPIRE', base .. ':active', 3600)
return 1
""",
)

# Arguments: lane, where it was built, marker and changes as they were before, and 1 to swap even if it changed since.
# 1 if what was built is in use now, and what was in use lies under `old`. Never across a rebuild of everything, which
# may have thrown away a part of what was built.
SWAP: Final = script(
    "swap",
    NAMES,
    GUARD,
    """
local lane, base = ARGV[1], ARGV[2]
if redis.call('GET', WHOLE) ~= ARGV[3] then return 0 end
if (redis.call('HGET', CHANGES, lane) or '') ~= ARGV[4] and ARGV[5] ~= '1' then return 0 end
for kind, live in pairs({pending = of(PENDING, lane), active = of(ACTIVE, lane)}) do
  local built, old = base .. ':' .. kind, base .. ':old:' .. kind
  if redis.call('EXISTS', live) == 1 then
    redis.call('RENAME', live, old)
    redis.call('EXPIRE', old, 3600)
  end
  if redis.call('EXISTS', built) == 1 then
    redis.call('RENAME', built, live)
    redis.call('PERSIST', live)
  end
end
redis.call('HINCRBY', CHANGES, lane, 1)
return 1
""",
)

# Arguments: ids. Forgets what is kept of those that stand nowhere.
RETIRE: Final = script(
    "retire",
    NAMES,
    GUARD,
    STATES,
    """
for _, id in ipairs(ARGV) do
  if not state_of(place_of(id)) then
    redis.call('HDEL', PLACES, id)
    redis.call('DEL', EVENT .. id)
  end
end
return 1
""",
)

# Arguments: id, state, place and event of each, as they are now; without a state it is gone.
FOLLOW: Final = script(
    "follow",
    NAMES,
    GUARD,
    STATES,
    _PUT,
    """
for i = 1, #ARGV, 4 do
  local before = place_of(ARGV[i])
  if before then forget(before) end
  if ARGV[i + 1] ~= '' then changed(put(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3])) end
end
return 1
""",
)
