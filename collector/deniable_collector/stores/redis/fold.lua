-- Add one commit to the tallies of a shard and remember its ids, or do neither.
--
-- Redis does not roll a script back, so everything is read and checked first; the
-- first write comes when nothing can be refused any more.
--
-- A tally is one string (forms.py): a header of the u64 stamp of its last commit, the u32 kind, and the
-- u32 lengths of two parts, and the parts, of which the second has the increments of an open tally.
-- A stamp is random: it tells whether the tally is the one that was read. Each tally of a commit has
-- its own, or they would tell which tallies a commit had in common. A commit either appends its
-- increments, or swaps the whole string for another, if nobody has changed it since it was read.
--
-- A generation of ids (see ids.py) is a hash: field `n` is the number of its ids, and the
-- other fields are slots, each with its tags side by side.
--
-- KEYS  the seed of the slots, the set of tallies that have increments, five generations of each term
--       (new ids go into the first of their term), then for each tally the index of its windows and
--       itself
-- ARGV  the seed by which the slots were named, for each term the seconds that a new generation
--       lives (JSON), the kind of an open tally, the bytes of increments that any may have and that
--       none may have, ids in the first level and the deepest level (JSON), the stamps of all tallies
--       (u64), the term of each id (a digit), slots and tags of the ids, and for each tally its
--       window, the header that was read ('' if there was none; '+' to append), and the new string
--       or the increments
--
-- Returns {0} when the commit is in, {1, positions of the ids that were seen}, {2, number of a tally
-- that has changed}, {3, numbers of the tallies that take no increments, and so need a swap}, {4, the
-- seed that names the slots here}, or {5, a command that the user may not call}.

local HEADER, TAG, SEARCHED = 20, 8, 5
-- Values on Lua's stack at once: far below its limit of 8,000.
local PIECE = 512

-- A right that is missing would end the script between two writes: counts without their ids, which
-- each retry would add again. Redis 6 cannot tell.
local allowed, of_ids, of_tally = redis.acl_check_cmd, KEYS[3], KEYS[#KEYS]
for command, arguments in pairs(allowed and {
  get = {KEYS[1]}, set = {of_tally, ''}, getrange = {of_tally, '0', '0'},
  setrange = {of_tally, '0', ''}, sadd = {of_tally, ''}, srem = {of_tally, ''}, exists = {of_ids},
  hget = {of_ids, 'n'}, hmget = {of_ids, 'n'}, hincrby = {of_ids, 'n', '1'},
  hset = {of_ids, 'n', '1'}, ttl = {of_ids}, expire = {of_ids, '1'},
} or {}) do
  if not allowed(command, unpack(arguments)) then return {5, command} end
end

local seed = redis.call('GET', KEYS[1])
if seed and seed ~= ARGV[1] then return {4, seed} end
local lifetimes = cjson.decode(ARGV[2])
local generations = SEARCHED * #lifetimes
local open, least, most, first_level, deepest = unpack(cjson.decode(ARGV[3]))
local stamps, terms, slots, tags = unpack(ARGV, 4, 7)
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
if call('EXISTS', unpack(KEYS, 3 + SEARCHED, 2 + generations)) > 0 then searched = generations end
for generation = 1, searched do
  local key = KEYS[2 + generation]
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

local writes, full = {}, {3}
local function write(...) writes[#writes + 1] = {...} end
for number = 1, (#KEYS - 2 - generations) / 2 do
  local index, key = KEYS[1 + generations + 2 * number], KEYS[2 + generations + 2 * number]
  local window, expected, data = unpack(ARGV, 5 + 3 * number, 7 + 3 * number)
  local header = call('GETRANGE', key, 0, HEADER - 1)
  if #header == 0 then write('SADD', index, window) end
  if expected == '+' then
    local kind, block, added = open, 0, 0
    if #header > 0 then kind, block, added = struct.unpack('<I4I4I4', header, 9) end
    if kind ~= open or added >= math.min(math.max(least, block), most) then full[#full + 1] = number end
    local stamp = sub(stamps, 8 * number - 7, 8 * number)
    write('SETRANGE', key, 0, stamp .. struct.pack('<I4I4I4', open, block, added + #data))
    write('SETRANGE', key, HEADER + block + added, data)
    write('SADD', KEYS[2], key)
  elseif expected == header then
    write('SET', key, data)
    write('SREM', KEYS[2], key)
  else
    return {2, number}
  end
end
if #full > 1 then return full end

for _, command in ipairs(writes) do call(unpack(command)) end
if ids > 0 and not seed then call('SET', KEYS[1], ARGV[1]) end
local sorted = {}
for id = 1, ids do
  local term = tonumber(sub(terms, id, id))
  sorted[term] = sorted[term] or {}
  table.insert(sorted[term], id)
end
for term, mine in pairs(sorted) do
  local generation = 1 + SEARCHED * term
  local key, names = KEYS[2 + generation], slots_at(depth[generation] or 0)
  local held, place, fields, size = before[generation] or {}, {}, {}, 0
  for _, id in ipairs(mine) do
    local slot = names[id]
    local at = place[slot]
    if at then
      fields[at] = fields[at] .. tag[id]
    else
      size = size + 2
      fields[size - 1] = slot
      fields[size] = (held[id] or '') .. tag[id]
      place[slot] = size
    end
  end
  call('HINCRBY', key, 'n', #mine)
  for first = 1, size, PIECE do
    call('HSET', key, unpack(fields, first, math.min(first + PIECE - 1, size)))
  end
  -- Not only for its first id: where a clock had jumped, that came long before its time.
  local lifetime = lifetimes[1 + term]
  if call('TTL', key) < lifetime then call('EXPIRE', key, lifetime) end
end
return {0}
