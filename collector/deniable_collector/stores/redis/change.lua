-- Make one change of the tallies of a shard, or do nothing (contract.py says what a change is).
--
-- KEYS  the index of tallies, the set of those that have increments, and the key of each tally of
--       the change
-- ARGV  for each what to do ('same', 'drop' or 'put'), its name, the stamp that it must have ('' if
--       there must be none, '*' if any will do), the whole new string, and its SHA-1 in hexadecimal
--
-- Returns 1 when it is done, 0 when something has changed since it was read, -1 when a string was
-- damaged on its way. In both other cases nothing has changed.

-- A right that is missing would end the script between two writes. Redis 6 cannot tell.
local allowed, index = redis.acl_check_cmd, KEYS[1]
for command, arguments in pairs(allowed and {
  getrange = {index, '0', '0'}, unlink = {index}, srem = {index, ''}, set = {index, ''},
  sadd = {index, ''},
} or {}) do
  if not allowed(command, unpack(arguments)) then
    return redis.error_reply("NOPERM this user has no permissions to run the '" .. command .. "' command")
  end
end

for item = 1, #KEYS - 2 do
  local _, _, expected, value, digest = unpack(ARGV, 5 * item - 4, 5 * item)
  if expected ~= '*' and redis.call('GETRANGE', KEYS[2 + item], 0, 7) ~= expected then return 0 end
  if value ~= '' and redis.sha1hex(value) ~= digest then return -1 end
end
for item = 1, #KEYS - 2 do
  local todo, name, _, value = unpack(ARGV, 5 * item - 4, 5 * item - 1)
  if todo == 'drop' then
    redis.call('UNLINK', KEYS[2 + item])
    redis.call('SREM', index, name)
    redis.call('SREM', KEYS[2], KEYS[2 + item])
  elseif todo == 'put' then
    redis.call('SET', KEYS[2 + item], value)
    redis.call('SADD', index, name)
    redis.call('SREM', KEYS[2], KEYS[2 + item])
  end
end
return 1
