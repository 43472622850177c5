-- Swap the string of a tally for a sealed one, if nobody has changed it since it was read.
--
-- KEYS  the tally
-- ARGV  the beginning that was read, with the header; the whole sealed string; its SHA-1 in
--       hexadecimal
--
-- Returns 1 when it is sealed, 0 when somebody has changed it, -1 when the string was damaged on
-- its way. In both other cases the old string stays.

-- Inside a script Redis 7.0 does not say which right is missing.
for command, arguments in pairs(redis.acl_check_cmd and {
  getrange = {KEYS[1], '0', '0'}, set = {KEYS[1], ''},
} or {}) do
  if not redis.acl_check_cmd(command, unpack(arguments)) then
    return redis.error_reply("NOPERM this user has no permissions to run the '" .. command .. "' command")
  end
end

if redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) ~= ARGV[1] then return 0 end
if redis.sha1hex(ARGV[2]) ~= ARGV[3] then return -1 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
