-- Bits and bytes: where fields lie, how they are checked. A part of tlplab.lua.

return function(tables)
	local floor = math.floor
	-- Lua 5.2 has a library, 5.3 operators that 5.2 cannot even read.
	local xor = bit32 and bit32.bxor or load("return function(a, b) return a ~ b end")()
	local bytes = {}

	-- The value of a field of the header that begins at `start`, a UInt64 if it has more than 32 bits; and the bytes it is in.
	function bytes.read(tvb, start, field)
		local value = 0
		for _, run in ipairs(field) do
			value = value + run[3] * tvb(start):bitfield(run[1], run[2])
		end
		return value, tvb(start + field.at, field.bytes)
	end

	-- A function's number as bus, device and function.
	function bytes.bdf(id)
		return string.format("%02x:%02x.%d", floor(id / 256), floor(id / 8) % 32, id % 8)
	end

	-- A UInt64 without the zeros in front.
	function bytes.hex(value)
		return (value:tohex():gsub("^0*(%x)", "0x%1", 1))
	end

	local function crc(table, ones, from, to, byte_at)
		local found = ones
		for at = from, to - 1 do
			found = xor(floor(found / 256), table[xor(found % 256, byte_at(at)) + 1])
		end
		return xor(found, ones)
	end

	-- The CRC of Ethernet frames and of TLPs, over what `byte_at` gives from `from` to before `to`.
	function bytes.crc32(from, to, byte_at)
		return crc(tables.crc32, 0xffffffff, from, to, byte_at)
	end

	-- The CRC of DLLPs.
	function bytes.crc16(from, to, byte_at)
		return crc(tables.crc16, 0xffff, from, to, byte_at)
	end

	return bytes
end
