-- Make one change of the sums of a shard, and drop windows that they have, or do nothing.
--
-- KEYS  the index of windows, that of sums, and a key for each item
-- ARGV  for each item what to do, its label, the stamp that it must have ('' if there is none), the
--       whole new string, and its SHA-1 in hexadecimal
--
-- What to do: 'same' only compares the stamp; 'drop' deletes a window, 'put' writes a sum, and
-- 'remove' deletes a sum, whatever its stamp is.
--
-- Returns 1 when it is done, 0 when something has changed since it was read, -1 when a string was
-- damaged on its way. In both other cases nothing has changed.

-- A right that is missing would end the script between two writes. Redis 6 cannot tell.
local allowed, key = redis.acl_check_cmd, KEYS[1]
for command, arguments in pairs(allowed and {
  getrange = {key, '0', '0'}, unlink = {key}, srem = {key, ''}, set = {key, ''}, sadd = {key, ''},
} or {}) do
  if not allowed(command, unpack(arguments)) then
    return redis.error_reply("NOPERM this user has no permissions to run the '" .. command .. "' command")
  end
end

local items = (#KEYS - 2)
for item = 1, items do
  local todo, _, expected, value, digest = unpack(ARGV, 5 * item - 4, 5 * item)
  if todo ~= 'remove' and redis.call('GETRANGE', KEYS[2 + item], 0, 7) ~= expected then return 0 end
  if todo == 'put' and redis.sha1hex(value) ~= digest then return -1 end
end
for item = 1, items do
  local todo, label, _, value = unpack(ARGV, 5 * item - 4, 5 * item - 1)
  local key = KEYS[2 + item]
  if todo == 'drop' then
    redis.call('UNLINK', key)
    redis.call('SREM', KEYS[1], label)
  elseif todo == 'remove' then
    redis.call('UNLINK', key)
    redis.call('SREM', KEYS[2], label)
  elseif todo == 'put' then
    redis.call('SET', key, value)
    redis.call('SADD', KEYS[2], label)
  end
end
return 1
