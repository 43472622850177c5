-- Swap the open form of a tally for its sealed one, if nobody has changed it since it was read.
--
-- KEYS  the tally
-- ARGV  the header that was read, the whole sealed string, and its SHA-1 in hexadecimal
--
-- Returns 1 when it is sealed, 0 when somebody has changed it, -1 when the string was damaged on
-- its way. In both other cases the open form stays.

if redis.call('GETRANGE', KEYS[1], 0, 15) ~= ARGV[1] then return 0 end
if redis.sha1hex(ARGV[2]) ~= ARGV[3] then return -1 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
