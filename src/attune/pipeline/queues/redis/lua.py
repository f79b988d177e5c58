"""What the queue in Redis consists of, and the Lua that its scripts share.

Keys (a lane's have its id after another colon; without one they are the whole system's):

    exec_queue:pending     sorted set of those that wait
    exec_queue:active      set of those that hold a slot
    exec_queue:event:ID    JSON of the execution.requested message, for 24 hours; nothing depends on it
    exec_queue:places      hash: execution to `lane:band:sequence:micros`, from which every score is made
    exec_queue:changes     hash: how often each queue was changed, by which a rebuild knows that it was overtaken
    exec_queue:whole       the marker: there as long as Redis holds everything that it should

A lane's score is band * 10^12 + sequence, so order is exact and no two are equal. The system's is band * 10^12 +
the milliseconds since 2024, whose microseconds are 1024ths: exact in a double up to 2055. Those of one microsecond
are put in order by sequence when they are taken, which costs some 4 microseconds for each of them.

Every script answers nil, and does nothing, while the marker is missing. Scripts find a lane's keys from places, so
they need one Redis, with or without replicas, and not a cluster.
"""

import hashlib
from typing import Final

import msgspec

PREFIX: Final = "exec_queue:"
MARKER: Final = f"{PREFIX}whole"
EVENT_SECONDS: Final = 86_400


class Script(msgspec.Struct, frozen=True):
    name: str
    text: str
    sha: str


def script(name: str, *parts: str) -> Script:
    text = "\n".join(parts)
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


NAMES: Final = f"""
local PENDING, ACTIVE, EVENT = '{PREFIX}pending', '{PREFIX}active', '{PREFIX}event:'
local PLACES, CHANGES, WHOLE = '{PREFIX}places', '{PREFIX}changes', '{MARKER}'
local EVENT_SECONDS = {EVENT_SECONDS}

local function of(key, lane)
  if lane == '' then return key end
  return key .. ':' .. lane
end

local function read_place(id, text)
  local lane, band, sequence, micros = string.match(text, '^(%d*):(%d):(%d+):(%d+)$')
  return {{id = id, lane = lane, band = tonumber(band), sequence = tonumber(sequence),
          micros = tonumber(micros)}}
end

local function lane_score(place)
  return string.format('%.0f', place.band * 1e12 + place.sequence)
end

local function system_score(place)
  local age = math.floor(place.micros / 1000) + (place.micros % 1000) / 1024
  return string.format('%.17g', place.band * 1e12 + age)
end
"""

GUARD: Final = "if redis.call('EXISTS', WHOLE) == 0 then return nil end"

STATES: Final = """
local function place_of(id)
  local text = redis.call('HGET', PLACES, id)
  return text and read_place(id, text)
end

local function state_of(place)
  if not place then return nil end
  if redis.call('SISMEMBER', ACTIVE, place.id) == 1 then return 'handed' end
  if redis.call('ZSCORE', PENDING, place.id) then return 'ready' end
  if place.lane == '' then return nil end
  if redis.call('ZSCORE', of(PENDING, place.lane), place.id) then return 'queued' end
  if redis.call('SISMEMBER', of(ACTIVE, place.lane), place.id) == 1 then return 'ready' end
  return nil
end

local function changed(place)
  redis.call('HINCRBY', CHANGES, '', 1)
  if place.lane ~= '' then redis.call('HINCRBY', CHANGES, place.lane, 1) end
end

local function holds_slot(place, state)
  return state == 'handed' or (state == 'ready' and place.lane ~= '')
end

local function forget(place)
  redis.call('SREM', ACTIVE, place.id)
  redis.call('ZREM', PENDING, place.id)
  if place.lane ~= '' then
    redis.call('SREM', of(ACTIVE, place.lane), place.id)
    redis.call('ZREM', of(PENDING, place.lane), place.id)
  end
  redis.call('HDEL', PLACES, place.id)
  redis.call('DEL', EVENT .. place.id)
  changed(place)
end
"""

ORDER: Final = """
local function before(a, b)
  if a.band ~= b.band then return a.band < b.band end
  if a.micros ~= b.micros then return a.micros < b.micros end
  if a.sequence ~= b.sequence then return a.sequence < b.sequence end
  return tonumber(a.id) < tonumber(b.id)
end

-- One that has lost its place would block its queue; without it the queue is seen to be wrong, and rebuilt.
local function places_of(ids, pending)
  local found = {}
  for start = 1, #ids, 1000 do
    local some = {unpack(ids, start, math.min(start + 999, #ids))}
    for i, text in ipairs(redis.call('HMGET', PLACES, unpack(some))) do
      if text then
        found[#found + 1] = read_place(some[i], text)
      else
        redis.call('ZREM', pending, some[i])
      end
    end
  end
  return found
end
"""
