-- TLPs. A part of tlplab.lua.

return function(fields, tables, bytes, conversations)
	local floor = math.floor
	local t, experts, layouts, bdf = fields.tlp, fields.experts, tables.layouts, bytes.bdf

	-- The ECRC covers everything but local prefixes, with bit 0 of Type and EP counted as 1.
	local function ecrc(tvb, from, header, to)
		return bytes.crc32(from, to, function(at)
			local byte = tvb(at, 1):uint()
			if at == header and byte % 2 == 0 then
				return byte + 1
			elseif at == header + 2 and floor(byte / 64) % 2 == 0 then
				return byte + 64
			end
			return byte
		end)
	end

	-- `x` is a TLP that is being read: its bytes and tree, what is known of it, and what was found wrong.
	local function problem(x, field, text)
		x.problems[#x.problems + 1] = field .. ": " .. text
	end

	-- Byte enables (PCIe 5.0 2.2.5).
	local function check_enables(x, first, last)
		local contiguous_first = first == 15 or first == 14 or first == 12 or first == 8
		local contiguous_last = last == 15 or last == 7 or last == 3 or last == 1
		if x.length == 1 then
			if last ~= 0 then
				problem(x, "Last DW BE", "one DW has none")
			end
		elseif first == 0 then
			problem(x, "First DW BE", "two or more DW need them")
		elseif last == 0 then
			problem(x, "Last DW BE", "two or more DW need them")
		elseif not (x.length == 2 and x.address_low % 8 == 0) then
			if not contiguous_first then
				problem(x, "First DW BE", "holes are for one DW or an aligned QW")
			elseif not contiguous_last then
				problem(x, "Last DW BE", "holes are for one DW or an aligned QW")
			end
		end
	end

	-- The value of a field of the header, and the bytes it is in.
	local function read(x, layout, name)
		return bytes.read(x.tvb, x.at, layouts[layout][name])
	end

	-- The value of a field, which is shown.
	local function show(x, layout, name)
		local value, range = read(x, layout, name)
		x.tree:add(t[name], range, value)
		return value
	end

	local function show_bdf(x, layout, name)
		local value, range = read(x, layout, name)
		x.tree:add(t[name], range, bdf(value))
		return value
	end

	local function read_address(x)
		local address, range = read(x, x.layout, "address")
		if x.header == 16 then
			if address:higher() == 0 then
				problem(x, "Fmt", "an address below 4 GiB needs the header of three DW")
			end
			x.address_low, x.address = address:lower(), bytes.hex(address)
		else
			x.address_low, x.address = address, string.format("0x%08x", address)
			address = UInt64(address)
		end
		x.tree:add(t.address, range, address)
	end

	local function read_requester(x)
		local id = show_bdf(x, "request", "requester")
		local tag, range = read(x, "request", "tag")
		if x.kind == "MWr" and x.th then
			tag = 0 -- the steering tag takes its place
		end
		x.tree:add(t.tag, range, tag)
		x.key = string.format("%04x.%03x", id, tag)
		x.info = x.info .. string.format(", requester %s, tag 0x%02x", bdf(id), tag)
	end

	local function read_enables(x, full)
		local first, range = read(x, "request", "first_be")
		local last = read(x, "request", "last_be")
		if full then -- the steering tag takes their place
			first, last = 15, x.length > 1 and 15 or 0
		end
		x.tree:add(t.last_be, range, last)
		x.tree:add(t.first_be, range, first)
		return first, last
	end

	local function read_memory(x)
		x.info = x.info .. ", len " .. x.length
		read_requester(x)
		local first, last = read_enables(x, x.th and x.kind:sub(1, 3) == "MRd")
		read_address(x)
		check_enables(x, first, last)
		if x.address_low % 4096 + x.length * 4 > 4096 then
			problem(x, "Length", "the request crosses a 4 KiB boundary")
		end
		x.info = x.info .. string.format(", last 0x%x, first 0x%x, Addr %s", last, first, x.address)
	end

	local function read_single(x)
		read_requester(x)
		local first, last = read_enables(x)
		if x.length ~= 1 then
			problem(x, "Length", "IO and configuration requests have one DW")
		end
		if last ~= 0 then
			problem(x, "Last DW BE", "one DW has none")
		end
		if x.tc ~= 0 then
			problem(x, "TC", "IO and configuration requests have TC 0")
		end
		if x.ro or x.ns then
			problem(x, "Attr", "IO and configuration requests have no attributes")
		end
		if x.address_type ~= 0 then
			problem(x, "AT", "only memory requests and atomics have an address type")
		end
		x.info = x.info .. string.format(", first 0x%x", first)
	end

	local function read_io(x)
		read_single(x)
		read_address(x)
		x.info = x.info .. ", Addr " .. x.address
	end

	local function read_configuration(x)
		read_single(x)
		local target, register = show_bdf(x, "request", "target"), show(x, "request", "register")
		x.info = x.info .. string.format(", to %s, reg 0x%03x", bdf(target), register)
	end

	local function read_atomic(x)
		read_requester(x)
		read_address(x)
		local operands = x.kind == "CAS" and 2 or 1
		local operand = x.length * 4 / operands
		if not (operand == 4 or operand == 8 or (operand == 16 and operands == 2)) then
			problem(x, "Length", "operands have 4 or 8 bytes, of compare and swap 16, too")
		elseif x.address_low % operand ~= 0 then
			problem(x, "Address", "it is no multiple of the operand")
		end
		operand = floor(operand)
		x.tree:add(t.operand, operand % 256)
		x.info = x.info .. string.format(", operand %d, Addr %s", operand, x.address)
	end

	local function read_message(x)
		local code, range = read(x, "request", "code")
		local routing = x.fmt_type % 8
		local known = tables.messages[code]
		local name = known and known.name or string.format("0x%02x", code)
		x.info = x.info .. ", " .. name
		read_requester(x)
		x.tree:add(t.code, range, name)
		if not tables.routings[routing] then
			problem(x, "Type", "a reserved routing")
		else
			x.tree:add(t.routing, x.tvb(x.at, 1), tables.routings[routing])
		end
		if not known then
			problem(x, "Message Code", "it is not defined")
			return
		end
		if known.content and x.tvb(x.at + 8, 8):bytes():tohex():find("[^0]") then
			x.tree:add(t.content, x.tvb(x.at + 8, 8))
		end
		if tables.routings[routing] and not known.routings[routing] then
			problem(x, "Type", "a routing that this message does not have")
		end
		local payload = x.data and x.length or 0
		if not known.any and not known.payload[payload] then
			problem(x, "Length", "a payload that this message does not have")
		end
		if x.tc ~= 0 and not known.tc then
			problem(x, "TC", "this message has TC 0")
		end
		if not known.vendor then
			x.ro, x.ns = false, false
		end
	end

	local function read_completion(x)
		local completer, status = show_bdf(x, "completion", "completer"), show(x, "completion", "status")
		local bcm, bcm_at = read(x, "completion", "bcm")
		x.tree:add(t.bcm, bcm_at, bcm == 1)
		local byte_count, count_at = read(x, "completion", "byte_count")
		byte_count = byte_count == 0 and 4096 or byte_count
		x.tree:add(t.byte_count, count_at, byte_count)
		local requester, tag = show_bdf(x, "completion", "requester"), show(x, "completion", "tag")
		local lower = show(x, "completion", "lower_address")
		if not tables.statuses[status] then
			problem(x, "Completion Status", "it is reserved")
		elseif status ~= 0 then
			x.tree:add_proto_expert_info(experts.refused, "The request was not carried out: " .. tables.status_meanings[status])
			if x.data then
				problem(x, "Completion Status", "only a successful completion has data")
			end
		elseif x.data and x.length * 4 > lower % 4 + byte_count + 3 then
			problem(x, "Length", "more data than the byte count leaves")
		end
		x.key = string.format("%04x.%03x", requester, tag)
		x.last = not x.data or math.min(x.length * 4 - lower % 4, byte_count) == byte_count
		local name = status == 0 and "success" or tables.statuses[status] or status
		x.info = x.info .. (x.data and ", len " .. x.length or "") .. string.format(", completer %s, %s, bc %d, requester %s, tag 0x%02x, lowaddr 0x%02x",
			bdf(completer), name, byte_count, bdf(requester), tag, lower)
	end

	local readers = {
		memory = read_memory, io = read_io, configuration = read_configuration, atomic = read_atomic,
		message = read_message, completion = read_completion,
	}

	-- Prefixes, in front of the header.
	local function read_prefixes(x)
		local at, local_bytes, ends = x.start, 0, 0
		while at + 4 <= x.tvb:len() and floor(x.tvb(at, 1):uint() / 32) == 4 do
			local kind = x.tvb(at, 1):uint()
			x.tree:add(t.prefix, x.tvb(at, 4)):append_text(" (" .. (tables.prefixes[kind] or "reserved") .. ")")
			if not tables.prefixes[kind] then
				problem(x, "Prefix Type", "it is reserved")
			elseif floor(kind / 16) % 2 == 1 then
				ends = ends + 1
				if ends == 5 then
					problem(x, "Prefix", "more than four end-to-end prefixes")
				end
			elseif ends > 0 then
				problem(x, "Prefix", "a local prefix behind an end-to-end one")
			else
				if local_bytes > 0 then
					problem(x, "Prefix", "more than one local prefix")
				end
				local_bytes = local_bytes + 4
			end
			at = at + 4
		end
		x.at, x.covered = at, x.start + local_bytes
	end

	local function read_attributes(x, class)
		local function is_set(name)
			return read(x, "tlp", name) == 1
		end
		x.tc, x.address_type = read(x, "tlp", "tc"), read(x, "tlp", "at")
		x.ido, x.ro, x.ns = is_set("ido"), is_set("ro"), is_set("ns")
		x.poisoned, x.digest = is_set("poisoned"), is_set("td")
		local memory = class == "memory" or class == "atomic"
		x.th = is_set("th") and memory
		x.has_address_type = memory or x.address_type ~= 0
		if class == "message" or class == "completion" then
			x.address_type, x.has_address_type = 0, false -- reserved there
		end
		if class == "io" or class == "configuration" then
			x.ido = false -- reserved there
		end
		if x.address_type == 3 then
			problem(x, "AT", "it is reserved")
		elseif memory and x.address_type == 1 and x.kind:sub(1, 3) ~= "MRd" then
			problem(x, "AT", "only a memory read asks for a translation")
		end
		if x.th and x.kind == "DMWr" then
			problem(x, "TH", "a deferrable write has no room for a steering tag")
		end
		if x.poisoned and not x.data then
			problem(x, "EP", "only a TLP with data can be poisoned")
		end
	end

	local function show_attributes(x)
		local function put(name, value)
			local _, range = read(x, "tlp", name)
			x.tree:add(t[name], range, value)
		end
		put("tc", x.tc)
		for _, name in ipairs({ "ido", "ro", "ns", "poisoned" }) do
			put(name, x[name])
		end
		put("td", x.digest)
		if x.has_address_type then
			put("at", x.address_type)
		end
		if x.tc ~= 0 then
			x.info = x.info .. ", TC" .. x.tc
		end
		for _, attribute in ipairs({ { "ro", "RO" }, { "ido", "IDO" }, { "ns", "NS" }, { "poisoned", "poisoned" } }) do
			if x[attribute[1]] then
				x.info = x.info .. ", " .. attribute[2]
			end
		end
		if x.th then
			show(x, x.layout, "ph")
			show(x, x.kind == "MWr" and "write" or "read", "st")
		end
		if x.poisoned then
			x.tree:add_proto_expert_info(experts.poisoned)
		end
	end

	-- Payload and digest, and whether the bytes are as many as the header says.
	local function read_rest(x)
		local start, on_wire, kept = x.at + x.header, x.tvb:reported_len() - x.behind, x.tvb:len()
		kept = math.min(kept, on_wire)
		local payload = x.data and x.length * 4 or 0
		local expected = start + payload + (x.digest and 4 or 0)
		local there = math.min(payload, math.max(kept - start, 0))
		if there > 0 then
			x.tree:add(t.payload, x.tvb(start, there))
		end
		if on_wire ~= expected then
			problem(x, "Length", string.format("the header says %d bytes, there are %d", expected - x.start, on_wire - x.start))
		elseif x.digest and kept == expected then
			local range = x.tvb(expected - 4, 4)
			x.tree:add(t.digest, range)
			local good = ecrc(x.tvb, x.covered, x.at, expected - 4) == range:le_uint()
			x.tree:add(t.ecrc, range, good and "good" or "bad"):set_generated()
			if not good then
				x.tree:add_proto_expert_info(experts.ecrc)
			end
		end
		if x.digest then
			x.info = x.info .. ", digest"
		end
	end

	local function read_header(x)
		local have = x.tvb:len() - x.at
		local fmt_type = have > 0 and x.tvb(x.at, 1):uint() or 0
		x.fmt_type = fmt_type
		x.header = floor(fmt_type / 32) % 2 == 1 and 16 or 12
		x.layout = x.header == 16 and "four_dw" or "three_dw"
		if have < x.header then
			problem(x, "TLP Header", string.format("it takes %d bytes, there are %d", x.header, have))
			return
		end
		x.tree:add(t.fmt_type, x.tvb(x.at, 1))
		local known = tables.types[fmt_type]
		if not known then
			problem(x, "Fmt/Type", string.format("0x%02x is not defined", fmt_type))
			return
		end
		x.kind, x.data = known.name, floor(fmt_type / 64) % 2 == 1
		x.info = x.kind
		x.tree:add(t.kind, x.tvb(x.at, 1), x.kind)
		local length, range = read(x, "tlp", "length")
		x.length = length == 0 and 1024 or length
		if known.class == "memory" or x.data and (known.class == "message" or known.class == "completion") then
			x.tree:add(t.length, range, x.length)
		end
		read_attributes(x, known.class)
		readers[known.class](x)
		show_attributes(x)
		read_rest(x)
		x.class = known.class
	end

	-- Shows the TLP that begins at `start` and has so many bytes behind it that are none of its own; gives the text of its line.
	return function(tvb, start, pinfo, parent, behind)
		local tree = parent:add(fields.protocols.tlp, tvb(start))
		local x = { tvb = tvb, start = start, behind = behind or 0, tree = tree, problems = {}, info = "TLP" }
		read_prefixes(x)
		read_header(x)
		tree:append_text(": " .. x.info)
		for _, text in ipairs(x.problems) do
			tree:add(t.malformed, text):set_generated()
			tree:add_proto_expert_info(experts.tlp, text)
		end
		if #x.problems > 0 then
			return x.info .. " [malformed: " .. x.problems[1] .. "]"
		end
		if x.key and not conversations.is_repeated() then
			if x.class == "completion" then
				conversations.completion_seen(pinfo, x.key, x.last)
			elseif x.kind ~= "MWr" and x.class ~= "message" then
				conversations.request_seen(pinfo, x.key)
			end
			conversations.show_links(pinfo, tree, x.class == "completion")
		end
		return x.info
	end
end
