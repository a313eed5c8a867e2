-- The datagrams beside the TLPs: configuration space, the driver's messages, the adapter's registers. A part of tlplab.lua.

return function(fields, tables, bytes)
	local c, bdf = fields.control, bytes.bdf

	local function malformed(tree, text)
		tree:add_proto_expert_info(fields.experts.control, text)
		return "malformed: " .. text
	end

	local function read_config(tvb, tree)
		if tvb:len() < 6 then
			return malformed(tree, "a config access has six bytes")
		end
		local command = tvb(0, 1):bitfield(0, 2)
		if command > 1 then
			return malformed(tree, "the command is neither 0 (read) nor 1 (write)")
		end
		local operation = command == 0 and "read" or "write"
		local function show(name)
			local value, range = bytes.read(tvb, 0, tables.layouts.config[name])
			tree:add(c[name], range, value)
			return value
		end
		tree:add(c.operation, tvb(0, 1), operation)
		local mask, register, data = show("mask"), show("register"), show("data")
		return string.format("config %s, mask 0x%x, reg 0x%03x, data 0x%08x", operation, mask, register, data)
	end

	local function read_registers(tvb, tree)
		local operations = { [0x10] = "read", [0x11] = "write" }
		if tvb:len() < 6 then
			return malformed(tree, "a register access has six bytes")
		end
		local operation, register = operations[tvb(0, 1):uint()], tvb(1, 1):uint()
		if not operation then
			return malformed(tree, "the operation is neither 0x10 (read) nor 0x11 (write)")
		elseif not tables.registers[register] then
			return malformed(tree, "there is no such register")
		end
		tree:add(c.operation, tvb(0, 1), operation)
		tree:add(c.register, tvb(1, 1)):append_text(" (" .. tables.registers[register] .. ")")
		tree:add_le(c.data, tvb(2, 4))
		return string.format("registers %s, reg 0x%02x %s, data 0x%08x", operation, register, tables.registers[register], tvb(2, 4):le_uint())
	end

	local function read_driver(tvb, tree)
		local length = tvb:reported_len()
		if tvb:len() < length or not (length == 2 or length == 4 or length == 8 or length == 16 or length == 192) then
			return malformed(tree, "a message has 2, 4, 8, 16 or 192 bytes")
		end
		if length == 4 then
			local code = tvb(0, 4):le_uint()
			if not tables.requests[code] then
				return malformed(tree, "the question is none of 1, 2, 3 and 100")
			end
			tree:add(c.operation, "request")
			tree:add_le(c.code, tvb(0, 4))
			return "message request, " .. tables.requests[code]
		end
		tree:add(c.operation, "reply")
		if length == 2 then
			tree:add(c.device_id, tvb(0, 2), bdf(tvb(0, 2):le_uint()))
			return "message reply, device id " .. bdf(tvb(0, 2):le_uint())
		elseif length == 8 then
			tree:add_le(c.bar4, tvb(0, 8))
			return "message reply, BAR4 at " .. bytes.hex(tvb(0, 8):le_uint64())
		elseif length == 16 then
			tree:add_le(c.writes, tvb(0, 8))
			tree:add_le(c.bytes_written, tvb(8, 8))
			return "message reply, " .. tostring(tvb(0, 8):le_uint64()) .. " writes, " .. tostring(tvb(8, 8):le_uint64()) .. " B"
		end
		for vector = 0, length / 12 - 1 do
			tree:add_le(c.address, tvb(vector * 12, 8)):append_text(string.format(" (vector %d)", vector))
			tree:add_le(c.data, tvb(vector * 12 + 8, 4))
		end
		return "message reply, MSI-X table"
	end

	local readers = { config = read_config, message = read_driver, registers = read_registers }

	-- Shows the datagram of a channel; gives the text of its line.
	return function(tvb, parent, channel)
		local tree = parent:add(fields.protocols.control, tvb())
		tree:add(c.channel, channel):set_generated()
		local info = readers[channel](tvb, tree)
		tree:append_text(": " .. info)
		return info
	end
end
