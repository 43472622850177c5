-- Add one commit to the tallies of a shard and remember its ids, or do neither.
--
-- Redis does not roll a script back, so everything is read and checked first; the
-- first write comes when nothing can be refused any more.
--
-- A tally is one string: a header of u64 commits and u64 bytes per counter (4 or 8), then
-- its counters, all little-endian. Zeros at its end may be missing. A commit either swaps
-- the whole string for another, if nobody has changed it since it was read, or adds runs
-- of neighbouring counters to it.
--
-- A generation of ids (see ids.py) is a hash: field `n` is the number of its ids, and the
-- other fields are slots, each with its tags side by side.
--
-- KEYS  the seed of the slots, generations (new ids go into the first), then for each tally
--       the index of its windows and itself
-- ARGV  the seed by which the slots were named, number of generations, seconds that a new one lives, highest counter, ids in the
--       first level, deepest level, slots and tags of the ids, and for each tally its
--       window, the header that was read ('' if there was none, '+' to add runs), and the
--       new string or the runs
-- A run is u32 first counter, u32 length, then as many u32 counts.
--
-- Returns {0} when the commit is in, {1, positions of the ids that were seen},
-- {2, number of a tally that would exceed the highest counter}, {3, number of a tally that
-- has changed}, {4, number of a tally that needs wider counters, and so a swap}, or
-- {5, the seed that names the slots here}.

local HEADER, NARROW, WIDE, TAG = 16, 4, 8, 8
local NARROW_TOP = 4294967295
-- Values on Lua's stack at once: far below its limit of 8,000.
local PIECE = 512

local seed = redis.call('GET', KEYS[1])
if seed and seed ~= ARGV[1] then return {5, seed} end
local generations, lifetime, top = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local first_level, deepest = tonumber(ARGV[5]), tonumber(ARGV[6])
local slots, tags = ARGV[7], ARGV[8]
local ids = #tags / TAG

local function tag_of(id)
  return string.sub(tags, TAG * id - TAG + 1, TAG * id)
end

local function slot_of(id, level)
  return string.sub(slots, 8 * id - 7, 8 * id - 6 + level)
end

local function holds(packed, tag)
  local at = string.find(packed, tag, 1, true)
  while at and at % TAG ~= 1 do at = string.find(packed, tag, at + 1, true) end
  return at
end

local function each_piece(total, act)
  for first = 1, total, PIECE do act(first, math.min(first + PIECE - 1, total)) end
end

-- What the deepest level of the first generation holds, slot by slot.
local before, depth, begun = {}, 0, false
local met = {}
for generation = 1, generations do
  local count = redis.call('HGET', KEYS[1 + generation], 'n')
  if count then
    local level, limit = 0, first_level
    while tonumber(count) >= limit and level < deepest do level, limit = level + 1, 16 * limit end
    if generation == 1 then depth, begun = level, true end
    for reached = 0, level do
      each_piece(ids, function(first, last)
        local fields = {}
        for id = first, last do fields[#fields + 1] = slot_of(id, reached) end
        local found = redis.call('HMGET', KEYS[1 + generation], unpack(fields))
        for place, packed in ipairs(found) do
          local id = first + place - 1
          if packed then
            if holds(packed, tag_of(id)) then met[id] = true end
            if generation == 1 and reached == level then before[fields[place]] = packed end
          end
        end
      end)
    end
  end
end
local seen = {1}
for id = 1, ids do
  if met[id] then seen[#seen + 1] = id end
end
if #seen > 1 then return seen end

local function add(number, key, header, runs)
  local commits, size = 0, NARROW
  if #header > 0 then commits, size = struct.unpack('<I8I8', header) end
  local writes, position = {{0, struct.pack('<I8I8', commits + 1, size)}}, 1
  while position <= #runs do
    local first, length
    first, length, position = struct.unpack('<I4I4', runs, position)
    local from = HEADER + first * size
    local old = redis.call('GETRANGE', key, from, from + length * size - 1)
    old = old .. string.rep('\0', length * size - #old)
    local format = '<' .. string.rep('I' .. size, length)
    local counters = {struct.unpack(format, old)}
    local counts = {struct.unpack('<' .. string.rep('I4', length), runs, position)}
    position = counts[length + 1]
    for place = 1, length do
      local counter = counters[place] + counts[place]
      if counter > top then return 2 end
      if size == NARROW and counter > NARROW_TOP then return 4 end
      counters[place] = counter
    end
    writes[#writes + 1] = {from, struct.pack(format, unpack(counters, 1, length))}
  end
  return 0, writes
end

local plans = {}
for number = 1, (#KEYS - 1 - generations) / 2 do
  local index, key = KEYS[generations + 2 * number], KEYS[generations + 2 * number + 1]
  local window, expected, data = unpack(ARGV, 6 + 3 * number, 8 + 3 * number)
  local header = redis.call('GETRANGE', key, 0, HEADER - 1)
  local plan = {index, key, #header == 0 and window}
  if expected == '+' then
    local verdict, writes = add(number, key, header, data)
    if verdict > 0 then return {verdict, number} end
    plan[4] = writes
  elseif expected == header then
    plan[5] = data
  else
    return {3, number}
  end
  plans[number] = plan
end

for _, plan in ipairs(plans) do
  local index, key, window, writes, whole = unpack(plan, 1, 5)
  if window then redis.call('SADD', index, window) end
  if whole then
    redis.call('SET', key, whole)
  else
    for _, write in ipairs(writes) do redis.call('SETRANGE', key, write[1], write[2]) end
  end
end
if ids > 0 then
  local names = {}
  for id = 1, ids do
    local slot = slot_of(id, depth)
    if not before[slot] then before[slot] = '' end
    before[slot] = before[slot] .. tag_of(id)
    names[slot] = true
  end
  local fields = {}
  for slot in pairs(names) do
    fields[#fields + 1] = slot
    fields[#fields + 1] = before[slot]
  end
  if not seed then redis.call('SET', KEYS[1], ARGV[1]) end
  redis.call('HINCRBY', KEYS[2], 'n', ids)
  each_piece(#fields, function(first, last)
    redis.call('HSET', KEYS[2], unpack(fields, first, last))
  end)
  if not begun then redis.call('EXPIRE', KEYS[2], lifetime) end
end
return {0}
