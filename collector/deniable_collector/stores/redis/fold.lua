-- Add one commit to the tallies of a shard and remember its ids, or do neither.
--
-- Redis does not roll a script back, so everything is read and checked first; the
-- first write comes when nothing can be refused any more.
--
-- A tally is one string: a header of the u64 stamp of its last commit and its u64 form, and what
-- the form says (forms.py). A stamp is random: it tells whether the tally is the one that was
-- read. Each tally of a commit has its own, or they would tell which tallies a commit had in
-- common. A commit either swaps the whole string for another, if nobody has changed it since it was
-- read, or adds runs of neighbouring counters to it.
--
-- A generation of ids (see ids.py) is a hash: field `n` is the number of its ids, and the
-- other fields are slots, each with its tags side by side.
--
-- KEYS  the seed of the slots, five generations of each term (new ids go into the first of their
--       term), then for each tally the index of its windows and itself
-- ARGV  the seed by which the slots were named, for each term the seconds that a new generation
--       lives, highest counter, ids in the first level, deepest level, the stamps of all tallies
--       (u64), the term of each id (a digit), slots and tags of the ids, and for each tally its
--       window, the header that was read ('' if there was none; to add runs '+' and the form of
--       a new tally), and the new string or the runs
-- A run is u32 first counter, u32 length, then as many u32 counts.
--
-- Returns {0} when the commit is in, {1, positions of the ids that were seen},
-- {2, number of a tally that would exceed the highest counter}, {3, number of a tally that
-- has changed}, {4, number of a tally that needs another form, and so a swap},
-- {5, the seed that names the slots here}, or {6, a command that the user may not call}.

local HEADER, NARROW, WIDE, TAG, SEARCHED = 16, 4, 8, 8, 5
-- As in forms.py.
local SPARSE, MOST_ROWS, ROWS_UNIT, SLOTS_UNIT = 128, 65536, 256, 16777216
local FACTOR, HASHES, SPARE = 41475557, 67108864, 64
-- Slots of a sparse tally that are read at once, and how many an entry may be from its hash.
local SLOTS, FARTHEST = 16, 48
local NARROW_TOP = 4294967295
-- Values on Lua's stack at once: far below its limit of 8,000.
local PIECE = 512

-- A right that is missing would end the script between two writes: counts without their ids, which
-- each retry would add again. Redis 6 cannot tell.
local allowed, of_ids, of_tally = redis.acl_check_cmd, KEYS[2], KEYS[#KEYS]
for command, arguments in pairs(allowed and {
  get = {KEYS[1]}, set = {of_tally, ''}, getrange = {of_tally, '0', '0'},
  setrange = {of_tally, '0', ''}, sadd = {of_tally, ''}, exists = {of_ids},
  hget = {of_ids, 'n'}, hmget = {of_ids, 'n'}, hincrby = {of_ids, 'n', '1'},
  hset = {of_ids, 'n', '1'}, ttl = {of_ids}, expire = {of_ids, '1'},
} or {}) do
  if not allowed(command, unpack(arguments)) then return {6, command} end
end

local seed = redis.call('GET', KEYS[1])
if seed and seed ~= ARGV[1] then return {5, seed} end
local lifetimes = {}
for seconds in string.gmatch(ARGV[2], '%d+') do lifetimes[#lifetimes + 1] = tonumber(seconds) end
local generations = SEARCHED * #lifetimes
local top, first_level, deepest = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local stamps, terms, slots, tags = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local ids = #tags / TAG

local call, sub, find = redis.call, string.sub, string.find

-- Each part of a string of equal parts, by its number.
local function cut(text, form, size)
  local parts = {}
  for first = 1, ids, PIECE do
    local number = math.min(PIECE, ids - first + 1)
    local found = {struct.unpack(string.rep(form, number), text, size * (first - 1) + 1)}
    if number == ids then return found end
    for each = 1, number do parts[first + each - 1] = found[each] end
  end
  return parts
end

local tag = cut(tags, 'c' .. TAG, TAG)

local slots_of = {}
local function slots_at(level)
  if not slots_of[level] then
    slots_of[level] = cut(slots, 'c' .. (3 + level) .. string.rep('x', 5 - level), 8)
  end
  return slots_of[level]
end

-- The deepest level of the first generation of each term, and what the slots of the ids hold there.
local before, depth = {}, {}
local met = {}
-- Most stores have ids of the shortest term alone.
local searched = SEARCHED
if call('EXISTS', unpack(KEYS, 2 + SEARCHED, 1 + generations)) > 0 then searched = generations end
for generation = 1, searched do
  local key = KEYS[1 + generation]
  local count = tonumber(call('HGET', key, 'n') or 0)
  local deep, limit = 0, first_level
  while count >= limit and deep < deepest do deep, limit = deep + 1, 16 * limit end
  local held
  if generation % SEARCHED == 1 then held, depth[generation] = {}, deep end
  for level = 0, count > 0 and deep or -1 do
    local names = slots_at(level)
    for first = 1, ids, PIECE do
      local last = math.min(first + PIECE - 1, ids)
      local found = call('HMGET', key, unpack(names, first, last))
      for id = first, last do
        local packed = found[id - first + 1]
        if packed then
          local own = tag[id]
          local at = find(packed, own, 1, true)
          while at and at % TAG ~= 1 do at = find(packed, own, at + 1, true) end
          if at then met[id] = true end
          if held and level == deep then held[id] = packed end
        end
      end
    end
  end
  before[generation] = held
end
if next(met) then
  local seen = {1}
  for id = 1, ids do
    if met[id] then seen[#seen + 1] = id end
  end
  return seen
end

local formats = {}
local function format(size, length)
  local name = size * 1024 + length
  if not formats[name] then formats[name] = '<' .. string.rep('I' .. size, length) end
  return formats[name]
end

-- Nothing is written before everything is checked, so changed slots wait in `changed`.
local function add_sparse(key, form, stamp, runs)
  local rows, capacity = math.floor(form / ROWS_UNIT) % MOST_ROWS, math.floor(form / SLOTS_UNIT)
  local base = HEADER + 4 * rows
  local pages, changed, writes = {}, {}, {{0, stamp .. struct.pack('<I8', form)}}
  local function hash(place) return math.floor(place * FACTOR % HASHES * capacity / HASHES) end
  local function read(slot)
    if changed[slot] then return changed[slot][1], changed[slot][2] end
    local page = math.floor(slot / SLOTS)
    if not pages[page] then
      local from = base + 8 * SLOTS * page
      local old = call('GETRANGE', key, from, from + 8 * SLOTS - 1)
      pages[page] = old .. string.rep('\0', 8 * SLOTS - #old)
    end
    return struct.unpack('<I4I4', pages[page], 8 * (slot - SLOTS * page) + 1)
  end
  local function write(slot, name, count) changed[slot] = {name, count} end
  local function insert(place, count)
    local own, home = place, hash(place)
    local slot = home
    while slot < capacity + SPARE and slot - home <= FARTHEST do
      local name, held = read(slot)
      if name == 0 then return write(slot, place + 1, count) end
      if name == own + 1 and place == own then
        if held + count > NARROW_TOP then return 4 end
        return write(slot, name, held + count)
      end
      -- What comes later in the order of (hash, place) makes room.
      local theirs = hash(name - 1)
      if theirs > home or (theirs == home and name - 1 > place) then
        write(slot, place + 1, count)
        place, count, home = name - 1, held, theirs
      end
      slot = slot + 1
    end
    return 4
  end
  local position = 1
  while position <= #runs do
    local first, length
    first, length, position = struct.unpack('<I4I4', runs, position)
    local counts = {struct.unpack(format(NARROW, length), runs, position)}
    position = counts[length + 1]
    for each = 1, length do
      local place, count = first + each - 1, counts[each]
      if place < rows then
        local from = HEADER + 4 * place
        local old = call('GETRANGE', key, from, from + 3)
        if #old == 4 then count = count + struct.unpack('<I4', old) end
        if count > NARROW_TOP then return 4 end
        writes[#writes + 1] = {from, struct.pack('<I4', count)}
      elseif count > 0 and insert(place, count) then
        return 4
      end
    end
  end
  for slot, entry in pairs(changed) do
    writes[#writes + 1] = {base + 8 * slot, struct.pack('<I4I4', entry[1], entry[2])}
  end
  return 0, writes
end

local function add(key, header, first_form, stamp, runs)
  local size = first_form
  if #header > 0 then size = struct.unpack('<I8', header, 9) end
  if size % ROWS_UNIT == SPARSE then return add_sparse(key, size, stamp, runs) end
  -- Sealed tallies are opened by a swap, which refuses a form that it does not know.
  if size ~= NARROW and size ~= WIDE then return 4 end
  local writes, position = {{0, stamp .. struct.pack('<I8', size)}}, 1
  while position <= #runs do
    local first, length
    first, length, position = struct.unpack('<I4I4', runs, position)
    local from = HEADER + first * size
    local old = call('GETRANGE', key, from, from + length * size - 1)
    if #old < length * size then old = old .. string.rep('\0', length * size - #old) end
    local counters = {struct.unpack(format(size, length), old)}
    local counts = {struct.unpack(format(NARROW, length), runs, position)}
    position = counts[length + 1]
    for place = 1, length do
      local counter = counters[place] + counts[place]
      if counter > top then return 2 end
      if size == NARROW and counter > NARROW_TOP then return 4 end
      counters[place] = counter
    end
    writes[#writes + 1] = {from, struct.pack(format(size, length), unpack(counters, 1, length))}
  end
  return 0, writes
end

local plans = {}
for number = 1, (#KEYS - 1 - generations) / 2 do
  local index, key = KEYS[generations + 2 * number], KEYS[generations + 2 * number + 1]
  local window, expected, data = unpack(ARGV, 7 + 3 * number, 9 + 3 * number)
  local header = call('GETRANGE', key, 0, HEADER - 1)
  local plan = {index, key, #header == 0 and window}
  if sub(expected, 1, 1) == '+' and #expected < HEADER then
    local first_form, stamp = tonumber(sub(expected, 2)), sub(stamps, 8 * number - 7, 8 * number)
    local verdict, writes = add(key, header, first_form, stamp, data)
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
  if window then call('SADD', index, window) end
  if whole then
    call('SET', key, whole)
  else
    for _, write in ipairs(writes) do call('SETRANGE', key, write[1], write[2]) end
  end
end
-- `mine` are the numbers of the ids, in their order; nil for all of them.
local function remember(mine, generation, lifetime)
  local key, names = KEYS[1 + generation], slots_at(depth[generation] or 0)
  local held, place, fields, size = before[generation] or {}, {}, {}, 0
  local number = mine and #mine or ids
  for each = 1, number do
    local id = mine and mine[each] or each
    local slot = names[id]
    local at = place[slot]
    if at then
      fields[at] = fields[at] .. tag[id]
    else
      size = size + 2
      fields[size - 1] = slot
      fields[size] = held[id] and held[id] .. tag[id] or tag[id]
      place[slot] = size
    end
  end
  call('HINCRBY', key, 'n', number)
  for first = 1, size, PIECE do
    call('HSET', key, unpack(fields, first, math.min(first + PIECE - 1, size)))
  end
  -- Not only for its first id: where a clock had jumped, that came long before its time.
  if call('TTL', key) < lifetime then call('EXPIRE', key, lifetime) end
end

if ids > 0 and not seed then call('SET', KEYS[1], ARGV[1]) end
if ids > 0 and not find(terms, '[^0]') then
  remember(nil, 1, lifetimes[1])
else
  local sorted = {}
  for id = 1, ids do
    local term = tonumber(sub(terms, id, id))
    sorted[term] = sorted[term] or {}
    sorted[term][#sorted[term] + 1] = id
  end
  for term, mine in pairs(sorted) do
    remember(mine, 1 + SEARCHED * term, lifetimes[1 + term])
  end
end
return {0}
