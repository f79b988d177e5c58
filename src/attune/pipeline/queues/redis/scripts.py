"""The atomic steps of the Redis queue, each one Lua script."""

from typing import Final

from attune.pipeline.queues.redis.lua import GUARD, NAMES, ORDER, STATES, script

# Arguments: for each, its id, its place and its event. How many were not there before.
ENQUEUE: Final = script(
    "enqueue",
    NAMES,
    GUARD,
    STATES,
    """
local new = 0
for i = 1, #ARGV, 3 do
  local id, text, event = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if not state_of(place_of(id)) then
    local place = read_place(id, text)
    local score = place.lane == '' and system_score(place) or lane_score(place)
    redis.call('ZADD', of(PENDING, place.lane), score, id)
    redis.call('HSET', PLACES, id, text)
    redis.call('SET', EVENT .. id, event, 'EX', EVENT_SECONDS)
    changed(place)
    new = new + 1
  end
end
return new
""",
)

# Arguments: lane, most that may be active (empty for no limit), how many. Id, place and event of each, in order.
SCHEDULE: Final = script(
    "schedule",
    NAMES,
    GUARD,
    STATES,
    ORDER,
    """
local lane, most, free = ARGV[1], ARGV[2], tonumber(ARGV[3])
local pending, active = of(PENDING, lane), of(ACTIVE, lane)

local function first_of_system(count)
  local edge = redis.call('ZRANGE', pending, count - 1, count - 1, 'WITHSCORES')[2] or '+inf'
  local places = places_of(redis.call('ZRANGE', pending, '-inf', edge, 'BYSCORE'), pending)
  table.sort(places, before)
  return {unpack(places, 1, math.min(count, #places))}
end

local function first_of_lane(count)
  return places_of(redis.call('ZRANGE', pending, 0, count - 1), pending)
end

if most ~= '' then free = math.min(free, tonumber(most) - redis.call('SCARD', active)) end
if free <= 0 then return {} end
local given = {}
for _, place in ipairs(lane == '' and first_of_system(free) or first_of_lane(free)) do
  redis.call('ZREM', pending, place.id)
  redis.call('SADD', active, place.id)
  if lane ~= '' then redis.call('ZADD', PENDING, system_score(place), place.id) end
  changed(place)
  given[#given + 1] = place.id
  given[#given + 1] = redis.call('HGET', PLACES, place.id)
  given[#given + 1] = redis.call('GET', EVENT .. place.id) or ''
end
return given
""",
)

# Arguments: ids. Those that held a slot.
RELEASE: Final = script(
    "release",
    NAMES,
    GUARD,
    STATES,
    """
local freed = {}
for _, id in ipairs(ARGV) do
  local place = place_of(id)
  if holds_slot(place, state_of(place)) then
    forget(place)
    freed[#freed + 1] = id
  end
end
return freed
""",
)

# Argument: an id. 1 if it held a slot and waits again.
PUT_BACK: Final = script(
    "put_back",
    NAMES,
    GUARD,
    STATES,
    """
local place = place_of(ARGV[1])
local state = state_of(place)
if not holds_slot(place, state) then return 0 end
if state == 'handed' then
  redis.call('SREM', ACTIVE, place.id)
  redis.call('ZADD', PENDING, system_score(place), place.id)
else
  redis.call('SREM', of(ACTIVE, place.lane), place.id)
  redis.call('ZREM', PENDING, place.id)
  redis.call('ZADD', of(PENDING, place.lane), lane_score(place), place.id)
end
changed(place)
return 1
""",
)

# Arguments: an id and a band. 1 if it waits, and does so in that band now.
UPDATE_PRIORITY: Final = script(
    "update_priority",
    NAMES,
    GUARD,
    STATES,
    """
local place = place_of(ARGV[1])
local state = state_of(place)
if not state or state == 'handed' then return 0 end
place.band = tonumber(ARGV[2])
if state == 'queued' then
  redis.call('ZADD', of(PENDING, place.lane), 'XX', lane_score(place), place.id)
else
  redis.call('ZADD', PENDING, 'XX', system_score(place), place.id)
end
redis.call('HSET', PLACES, place.id, string.format(
  '%s:%d:%.0f:%.0f', place.lane, place.band, place.sequence, place.micros))
changed(place)
return 1
""",
)

# Argument: an id. 1 if it was there.
REMOVE: Final = script(
    "remove",
    NAMES,
    GUARD,
    STATES,
    """
local place = place_of(ARGV[1])
local state = state_of(place)
if place then forget(place) end
return state and 1 or 0
""",
)

# Argument: an id. Its position where it waits now, 0 if it does not.
POSITION: Final = script(
    "position",
    NAMES,
    GUARD,
    STATES,
    ORDER,
    """
local place = place_of(ARGV[1])
local state = state_of(place)
if state == 'queued' then
  return redis.call('ZRANK', of(PENDING, place.lane), place.id) + 1
end
local score = state == 'ready' and redis.call('ZSCORE', PENDING, place.id)
if not score then return 0 end
local ahead = redis.call('ZCOUNT', PENDING, '-inf', '(' .. score)
local equals = redis.call('ZRANGE', PENDING, score, score, 'BYSCORE')
for _, other in ipairs(places_of(equals, PENDING)) do
  if before(other, place) then ahead = ahead + 1 end
end
return ahead + 1
""",
)

# Argument: a lane. Depth and active count, then how many wait in each band.
STATUS: Final = script(
    "status",
    NAMES,
    GUARD,
    """
local pending = of(PENDING, ARGV[1])
local found = {redis.call('ZCARD', pending), redis.call('SCARD', of(ACTIVE, ARGV[1]))}
for band = 0, 4 do
  local first, next = string.format('%.0f', band * 1e12), string.format('(%.0f', (band + 1) * 1e12)
  found[#found + 1] = redis.call('ZCOUNT', pending, first, next)
end
return found
""",
)

# Takes the marker away if another process of the server wrote it: what a restart brought back may be old.
VERIFY: Final = script(
    "verify",
    NAMES,
    """
local marker = redis.call('GET', WHOLE)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
if marker and string.sub(marker, 1, #run) ~= run then redis.call('DEL', WHOLE) end
return 1
""",
)
