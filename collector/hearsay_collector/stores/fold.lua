-- Add one commit to the rows of a shard and remember its ids, or do neither.
--
-- Redis does not roll a script back, so everything is read and checked first; the
-- first write comes when nothing can be refused any more.
--
-- KEYS  id buckets (new ids go into the first), window indexes, rows
-- ARGV  number of buckets, number of indexes, seconds that a bucket lives, highest cell,
--       number of ids, the ids, one window label per index, and per row the number of
--       reports to add and its runs
-- A run is u32 first column, u32 length, then as many u64 counts. A row is a header of
-- u64 reports and u64 bytes per cell (4 or 8), then its cells, all little-endian.
--
-- Returns {0} when the commit is in, {1, positions of the ids that were seen}, or
-- {2, number of the row that would exceed the highest cell}.

local HEADER = 16
local NARROW, WIDE = 4, 8
local NARROW_TOP = 4294967295
-- Values on Lua's stack at once: far below its limit of 8,000.
local PIECE = 512

local buckets, indexes, lifetime = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local top, ids = tonumber(ARGV[4]), tonumber(ARGV[5])
local argument = 6 + ids + indexes

local function format(size, length)
  return '<' .. string.rep('I' .. size, length)
end

local seen, met = {1}, {}
for bucket = 1, buckets do
  for first = 1, ids, PIECE do
    local last = math.min(first + PIECE - 1, ids)
    local hits = redis.call('SMISMEMBER', KEYS[bucket], unpack(ARGV, 5 + first, 5 + last))
    for place, hit in ipairs(hits) do
      local id = first + place - 1
      if hit == 1 and not met[id] then
        met[id] = true
        seen[#seen + 1] = id
      end
    end
  end
end
if #seen > 1 then return seen end

local rows = {}
for number = 1, #KEYS - buckets - indexes do
  local key = KEYS[buckets + indexes + number]
  local reports, runs = tonumber(ARGV[argument]), ARGV[argument + 1]
  argument = argument + 2
  local size = NARROW
  local header = redis.call('GETRANGE', key, 0, HEADER - 1)
  if #header > 0 then
    local before
    before, size = struct.unpack('<I8I8', header)
    reports = reports + before
  end
  if reports > top then return {2, number} end
  local grown = size
  local writes, position = {}, 1
  while position <= #runs do
    local first, length
    first, length, position = struct.unpack('<I4I4', runs, position)
    local from = HEADER + first * size
    local old = redis.call('GETRANGE', key, from, from + length * size - 1)
    old = old .. string.rep('\0', length * size - #old)
    local cells = {struct.unpack(format(size, length), old)}
    local counts = {struct.unpack(format(WIDE, length), runs, position)}
    position = counts[length + 1]
    cells[length + 1] = nil
    for place = 1, length do
      local cell = cells[place] + counts[place]
      if cell > top then return {2, number} end
      if cell > NARROW_TOP then grown = WIDE end
      cells[place] = cell
    end
    writes[#writes + 1] = {first, length, cells}
  end
  rows[number] = {key, reports, size, grown, writes}
end

for index = 1, indexes do
  redis.call('SADD', KEYS[buckets + index], ARGV[5 + ids + index])
end
for _, row in ipairs(rows) do
  local key, reports, size, grown, writes = unpack(row)
  if grown ~= size then
    local narrow = redis.call('GETRANGE', key, HEADER, -1)
    local parts = {string.rep('\0', HEADER)}
    for from = 1, #narrow, NARROW * PIECE do
      local length = math.min(PIECE, (#narrow - from + 1) / NARROW)
      local cells = {struct.unpack(format(NARROW, length), narrow, from)}
      parts[#parts + 1] = struct.pack(format(WIDE, length), unpack(cells, 1, length))
    end
    redis.call('SET', key, table.concat(parts))
  end
  redis.call('SETRANGE', key, 0, struct.pack('<I8I8', reports, grown))
  for _, write in ipairs(writes) do
    local first, length, cells = unpack(write)
    local packed = struct.pack(format(grown, length), unpack(cells))
    redis.call('SETRANGE', key, HEADER + first * grown, packed)
  end
end
for first = 1, ids, PIECE do
  redis.call('SADD', KEYS[1], unpack(ARGV, 5 + first, 5 + math.min(first + PIECE - 1, ids)))
end
if ids > 0 and redis.call('TTL', KEYS[1]) < 0 then
  redis.call('EXPIRE', KEYS[1], lifetime)
end
return {0}
