-- Wireshark dissector for NetTLP, and for the captures that tlplab writes of simulated links.
--
-- It shows TLPs of all types, DLLPs, flits and the datagrams beside them (configuration space, messages, registers); links requests
-- with their completions; and says what is malformed. The names and codes are in tlplab_tables.lua, which is generated and has to lie in
-- the same folder. Runs on the Lua of every Wireshark since 4.0 (5.2 to 5.4).
--
-- Display filters: tlp.kind == "MRd", tlp.tag == 3, tlp.requester == "1b:00.0", tlp.latency > 0.00001, tlp.malformed, nettlp.gap, ...

local source = debug.getinfo(1, "S").source:sub(2)
local tables = dofile((source:match("^(.*[/\\])") or "") .. "tlplab_tables.lua")

local floor = math.floor
-- Lua 5.2 has a library, 5.3 operators that 5.2 cannot even read.
local xor = bit32 and bit32.bxor or load("return function(a, b) return a ~ b end")()

local nettlp = Proto("nettlp", "NetTLP")
local control = Proto("nettlp_control", "NetTLP control")
local tlp = Proto("tlp", "PCI Express TLP")
local dllp = Proto("dllp", "PCI Express DLLP")
local link = Proto("pcie_link", "PCI Express link unit")
local check = Proto("nettlp_check", "NetTLP frame check")

-- Fields ------------------------------------------------------------------------------------------------------------------

local n = {
	seq = ProtoField.uint16("nettlp.seq", "Sequence number"),
	tstamp = ProtoField.uint32("nettlp.tstamp", "Time stamp (6.4 ns)"),
}
nettlp.fields = n

local c = {
	channel = ProtoField.string("nettlp_control.channel", "Channel"),
	operation = ProtoField.string("nettlp_control.operation", "Operation"),
	mask = ProtoField.uint8("nettlp_control.mask", "Byte enables", base.HEX),
	register = ProtoField.uint16("nettlp_control.register", "Register", base.HEX),
	data = ProtoField.uint32("nettlp_control.data", "Data", base.HEX),
	code = ProtoField.uint32("nettlp_control.code", "Question", base.DEC, tables.requests),
	bar4 = ProtoField.uint64("nettlp_control.bar4", "BAR4 address", base.HEX),
	device_id = ProtoField.string("nettlp_control.device_id", "Device"),
	address = ProtoField.uint64("nettlp_control.address", "MSI-X address", base.HEX),
}
control.fields = c

local t = {
	kind = ProtoField.string("tlp.kind", "Kind"),
	fmt_type = ProtoField.uint8("tlp.fmt_type", "Fmt and Type", base.HEX),
	prefix = ProtoField.bytes("tlp.prefix", "Prefix"),
	tc = ProtoField.uint8("tlp.tc", "Traffic class"),
	ido = ProtoField.bool("tlp.attr.ido", "ID-based ordering"),
	ro = ProtoField.bool("tlp.attr.ro", "Relaxed ordering"),
	ns = ProtoField.bool("tlp.attr.ns", "No snoop"),
	th = ProtoField.bool("tlp.th", "Hints"),
	ph = ProtoField.uint8("tlp.hint.ph", "Processing hint"),
	st = ProtoField.uint8("tlp.hint.st", "Steering tag", base.HEX),
	poisoned = ProtoField.bool("tlp.poisoned", "Poisoned"),
	td = ProtoField.bool("tlp.td", "Digest"),
	at = ProtoField.uint8("tlp.at", "Address type", base.DEC, tables.address_types),
	length = ProtoField.uint16("tlp.length", "Length (DW)"),
	requester = ProtoField.string("tlp.requester", "Requester"),
	completer = ProtoField.string("tlp.completer", "Completer"),
	tag = ProtoField.uint16("tlp.tag", "Tag", base.HEX_DEC),
	first_be = ProtoField.uint8("tlp.first_be", "First DW byte enables", base.HEX),
	last_be = ProtoField.uint8("tlp.last_be", "Last DW byte enables", base.HEX),
	address = ProtoField.uint64("tlp.address", "Address", base.HEX),
	operand = ProtoField.uint8("tlp.operand", "Operand (bytes)"),
	target = ProtoField.string("tlp.target", "Target"),
	register = ProtoField.uint16("tlp.register", "Register", base.HEX),
	code = ProtoField.string("tlp.code", "Message code"),
	routing = ProtoField.string("tlp.routing", "Routing"),
	content = ProtoField.bytes("tlp.content", "Message content"),
	status = ProtoField.uint8("tlp.status", "Completion status", base.DEC, tables.statuses),
	bcm = ProtoField.bool("tlp.bcm", "Byte count modified"),
	byte_count = ProtoField.uint16("tlp.byte_count", "Byte count"),
	lower_address = ProtoField.uint8("tlp.lower_address", "Lower address", base.HEX),
	payload = ProtoField.bytes("tlp.payload", "Payload"),
	digest = ProtoField.bytes("tlp.digest", "Digest (ECRC)"),
	ecrc = ProtoField.string("tlp.ecrc", "ECRC check"),
	response_in = ProtoField.framenum("tlp.response_in", "Last completion in", base.NONE, frametype.RESPONSE),
	response_to = ProtoField.framenum("tlp.response_to", "Completes the request in", base.NONE, frametype.REQUEST),
	latency = ProtoField.relative_time("tlp.latency", "Time since the request"),
	malformed = ProtoField.string("tlp.malformed", "Malformed"),
}
tlp.fields = t

local d = {
	kind = ProtoField.string("dllp.kind", "Kind"),
	sequence = ProtoField.uint16("dllp.sequence", "Sequence number"),
	vc = ProtoField.uint8("dllp.vc", "Virtual channel"),
	header_scale = ProtoField.uint8("dllp.header_scale", "Header scale"),
	header = ProtoField.uint8("dllp.header", "Header credits"),
	data_scale = ProtoField.uint8("dllp.data_scale", "Data scale"),
	data = ProtoField.uint16("dllp.data", "Data credits"),
	ack = ProtoField.bool("dllp.ack", "Feature ack"),
	supported = ProtoField.uint32("dllp.supported", "Features supported", base.HEX),
	body = ProtoField.bytes("dllp.body", "Vendor-specific"),
	crc = ProtoField.bytes("dllp.crc", "CRC"),
	crc_status = ProtoField.string("dllp.crc.status", "CRC check"),
	malformed = ProtoField.string("dllp.malformed", "Malformed"),
}
dllp.fields = d

local l = {
	kind = ProtoField.uint8("pcie_link.kind", "Unit", base.DEC, tables.link_units),
	flit_sequence = ProtoField.uint16("pcie_link.flit.sequence", "Flit sequence number"),
}
link.fields = l

local function expert_info(name, text, group, severity)
	return ProtoExpert.new(name, text, group, severity)
end
local e_tlp = expert_info("tlp.malformed.expert", "Malformed TLP", expert.group.MALFORMED, expert.severity.ERROR)
local e_ecrc = expert_info("tlp.ecrc.bad", "The ECRC does not match", expert.group.CHECKSUM, expert.severity.ERROR)
local e_status = expert_info("tlp.status.refused", "The request was not carried out", expert.group.RESPONSE_CODE, expert.severity.WARN)
local e_poison = expert_info("tlp.poisoned.expert", "The data are poisoned", expert.group.RESPONSE_CODE, expert.severity.WARN)
local e_alone = expert_info("tlp.unexpected", "No request in the capture waits for this completion", expert.group.SEQUENCE, expert.severity.NOTE)
tlp.experts = { e_tlp, e_ecrc, e_status, e_poison, e_alone }
local e_dllp = expert_info("dllp.malformed.expert", "Malformed DLLP", expert.group.MALFORMED, expert.severity.ERROR)
local e_crc = expert_info("dllp.crc.bad", "The CRC does not match", expert.group.CHECKSUM, expert.severity.ERROR)
dllp.experts = { e_dllp, e_crc }
local e_gap = expert_info("nettlp.gap", "Sequence numbers are missing", expert.group.SEQUENCE, expert.severity.WARN)
local e_again = expert_info("nettlp.duplicate", "A sequence number that was there already, or is late", expert.group.SEQUENCE, expert.severity.WARN)
local e_frame = expert_info("nettlp.malformed", "The frame contradicts itself", expert.group.MALFORMED, expert.severity.ERROR)
nettlp.experts = { e_gap, e_again, e_frame }
local e_control = expert_info("nettlp_control.malformed", "No access to the adapter", expert.group.MALFORMED, expert.severity.ERROR)
control.experts = { e_control }
local e_length = expert_info("nettlp_check.malformed", "The frame is shorter than the datagram in it", expert.group.MALFORMED, expert.severity.ERROR)
check.experts = { e_length }

local frame_bytes = Field.new("frame")
local eth_fcs = Field.new("eth.fcs")
local frame_len = Field.new("frame.len")
local frame_time = Field.new("frame.time_relative")
local frame_comment = Field.new("frame.comment")
local frame_interface = Field.new("frame.interface_name")
local ip_len = Field.new("ip.len")
local ip_hdr_len = Field.new("ip.hdr_len")
local udp_length = Field.new("udp.length")
local udp_dstport = Field.new("udp.dstport")
local udp_srcport = Field.new("udp.srcport")

-- What is remembered of a file --------------------------------------------------------------------------------------------------

local waiting -- requests by direction, requester and tag: frame and time
local requests -- by the frame of a completion: frame of the request and the time since
local responses -- by the frame of a request: frame of its last completion
local unexpected -- frames of completions that answer nothing
local clocks -- adapters by direction
local notes -- by frame: what is odd about its sequence number
local dissected -- the last frame that came to `nettlp`

function nettlp.init()
	waiting, requests, responses, unexpected, clocks, notes, dissected = {}, {}, {}, {}, {}, {}, 0
end

local function bdf(id)
	return string.format("%02x:%02x.%d", floor(id / 256), floor(id / 8) % 32, id % 8)
end

-- Nanoseconds since the first frame.
local function now()
	local time = frame_time()
	if not time then
		return 0
	end
	return time.value.secs * 1e9 + time.value.nsecs
end

-- Damaged on a simulated link, or sent again: no part of a conversation.
local function is_repeated()
	local comment = frame_comment()
	if not comment then
		return false
	end
	local words = ", " .. tostring(comment.value) .. ","
	for _, word in ipairs({ "corrupted", "replay", "nullified" }) do
		if words:find(", " .. word .. ",", 1, true) then
			return true
		end
	end
	return false
end

-- Requests and completions ------------------------------------------------------------------------------------------------------

local function request_seen(pinfo, key)
	if not pinfo.visited then
		waiting[tostring(pinfo.src) .. ">" .. tostring(pinfo.dst) .. "#" .. key] = { frame = pinfo.number, time = now() }
	end
end

local function completion_seen(pinfo, key, last)
	if pinfo.visited then
		return
	end
	local asked = tostring(pinfo.dst) .. ">" .. tostring(pinfo.src) .. "#" .. key
	local request = waiting[asked]
	if not request then
		unexpected[pinfo.number] = true
		return
	end
	requests[pinfo.number] = { frame = request.frame, latency = now() - request.time }
	if last then
		responses[request.frame] = pinfo.number
		waiting[asked] = nil
	end
end

local function show_links(pinfo, tree, completion)
	local item
	if completion then
		local request = requests[pinfo.number]
		if request then
			tree:add(t.response_to, request.frame):set_generated()
			local seconds = floor(request.latency / 1e9)
			tree:add(t.latency, NSTime.new(seconds, floor(request.latency - seconds * 1e9 + 0.5))):set_generated()
		elseif unexpected[pinfo.number] then
			tree:add_proto_expert_info(e_alone)
		end
	elseif responses[pinfo.number] then
		tree:add(t.response_in, responses[pinfo.number]):set_generated()
	end
end

-- Sequence numbers --------------------------------------------------------------------------------------------------------------

-- Did as much time pass on the adapter's clock as in the capture? Two adapters may have one address.
local function could_send(adapter, tstamp, time)
	local range = 2 ^ 32 * tables.tick_ns
	local passed = time - adapter.time
	local apart = math.abs(passed % range - (tstamp - adapter.tstamp) % 2 ^ 32 * tables.tick_ns)
	return math.min(apart, range - apart) <= 1e6 + passed / 1000
end

local function sequence_seen(pinfo, seq, tstamp)
	if pinfo.visited or (seq == 0 and tstamp == 0) then
		return
	end
	local key, time = tostring(pinfo.src) .. ">" .. tostring(pinfo.dst), now()
	clocks[key] = clocks[key] or {}
	local nearest, distance
	for _, adapter in ipairs(clocks[key]) do
		local later = (tstamp - adapter.tstamp) % 2 ^ 32
		local other = (adapter.seq - seq) % 65536 < 1024 and later > 0 and later < 2 ^ 31
		-- An old number with a new time stamp is that of another counter, such as another thread's.
		if not other and could_send(adapter, tstamp, time) then
			local ahead = (seq - adapter.seq - 1) % 65536
			ahead = math.min(ahead, 65536 - ahead)
			if not distance or ahead < distance then
				nearest, distance = adapter, ahead
			end
		end
	end
	if not nearest then
		if #clocks[key] < 64 then
			clocks[key][#clocks[key] + 1] = { seq = seq, tstamp = tstamp, time = time }
		end
		return
	end
	local ahead = (seq - nearest.seq) % 65536
	if (nearest.seq - seq) % 65536 < 1024 then
		notes[pinfo.number] = 0
		return
	elseif ahead ~= 1 then
		notes[pinfo.number] = ahead - 1
	end
	nearest.seq, nearest.tstamp, nearest.time = seq, tstamp, time
end

local function show_sequence(pinfo, tree)
	local missing = notes[pinfo.number]
	if missing == 0 then
		tree:add_proto_expert_info(e_again)
	elseif missing then
		tree:add_proto_expert_info(e_gap, string.format("%d sequence numbers are missing before this one", missing))
	end
end

-- TLPs ----------------------------------------------------------------------------------------------------------------------------

local function crc32(crc, byte)
	return xor(floor(crc / 256), tables.crc32[xor(crc % 256, byte) + 1])
end

-- The ECRC covers everything but local prefixes, with bit 0 of Type and EP counted as 1.
local function ecrc(tvb, from, header, to)
	local crc = 0xffffffff
	for at = from, to - 1 do
		local byte = tvb(at, 1):uint()
		if at == header and byte % 2 == 0 then
			byte = byte + 1
		elseif at == header + 2 and floor(byte / 64) % 2 == 0 then
			byte = byte + 64
		end
		crc = crc32(crc, byte)
	end
	return xor(crc, 0xffffffff)
end

-- A TLP that is being read: its bytes, tree, and what was found wrong.
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

local function read_address(x)
	local at = x.at + 8
	if x.header == 16 then
		if x.tvb(at, 4):uint() == 0 then
			problem(x, "Fmt", "an address below 4 GiB needs the header of three DW")
		end
		local low = x.tvb(at + 4, 4):uint()
		x.address_low = low - low % 4
		local address = x.tvb(at, 8):uint64()
		x.tree:add(t.address, x.tvb(at, 8), address - address % 4)
		x.address = "0x" .. (address - address % 4):tohex():gsub("^0+", "")
	else
		local low = x.tvb(at, 4):uint()
		x.address_low = low - low % 4
		x.tree:add(t.address, x.tvb(at, 4), UInt64(x.address_low))
		x.address = string.format("0x%08x", x.address_low)
	end
end

local function read_requester(x)
	local id = x.tvb(x.at + 4, 2):uint()
	x.tree:add(t.requester, x.tvb(x.at + 4, 2), bdf(id))
	local tag = x.tvb(x.at + 6, 1):uint() + x.tag_high
	if x.kind == "MWr" and x.th then
		tag = 0 -- the steering tag takes its place
	end
	x.tree:add(t.tag, x.tvb(x.at + 6, 1), tag)
	x.key = string.format("%04x.%03x", id, tag)
	x.info = x.info .. string.format(", requester %s, tag 0x%02x", bdf(id), tag)
end

local function read_enables(x, full)
	local byte = x.tvb(x.at + 7, 1):uint()
	local first, last = byte % 16, floor(byte / 16)
	if full then -- the steering tag takes their place
		first, last = 15, x.length > 1 and 15 or 0
	end
	x.tree:add(t.last_be, x.tvb(x.at + 7, 1), last)
	x.tree:add(t.first_be, x.tvb(x.at + 7, 1), first)
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
	local target, register = x.tvb(x.at + 8, 2):uint(), x.tvb(x.at + 10, 2):bitfield(4, 10) * 4
	x.tree:add(t.target, x.tvb(x.at + 8, 2), bdf(target))
	x.tree:add(t.register, x.tvb(x.at + 10, 2), register)
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
	local code, routing = x.tvb(x.at + 7, 1):uint(), x.fmt_type % 8
	local known = tables.messages[code]
	local name = known and known.name or string.format("0x%02x", code)
	x.info = x.info .. ", " .. name
	read_requester(x)
	x.tree:add(t.code, x.tvb(x.at + 7, 1), name)
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
	local completer, word = x.tvb(x.at + 4, 2):uint(), x.tvb(x.at + 6, 2):uint()
	local requester, tag = x.tvb(x.at + 8, 2):uint(), x.tvb(x.at + 10, 1):uint() + x.tag_high
	local status, byte_count = floor(word / 8192), word % 4096
	byte_count = byte_count == 0 and 4096 or byte_count
	local lower = x.tvb(x.at + 11, 1):uint() % 128
	x.tree:add(t.completer, x.tvb(x.at + 4, 2), bdf(completer))
	x.tree:add(t.status, x.tvb(x.at + 6, 1), status)
	x.tree:add(t.bcm, x.tvb(x.at + 6, 1), floor(word / 4096) % 2 == 1)
	x.tree:add(t.byte_count, x.tvb(x.at + 6, 2), byte_count)
	x.tree:add(t.requester, x.tvb(x.at + 8, 2), bdf(requester))
	x.tree:add(t.tag, x.tvb(x.at + 10, 1), tag)
	x.tree:add(t.lower_address, x.tvb(x.at + 11, 1), lower)
	if not tables.statuses[status] then
		problem(x, "Completion Status", "it is reserved")
	elseif status ~= 0 then
		x.tree:add_proto_expert_info(e_status, "The request was not carried out: " .. tables.statuses[status])
		if x.data then
			problem(x, "Completion Status", "only a successful completion has data")
		end
	elseif x.data and x.length * 4 > lower % 4 + byte_count + 3 then
		problem(x, "Length", "more data than the byte count says remain")
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

-- Attributes: byte 1 and 2 of the header.
local function read_attributes(x, class)
	local byte1, byte2 = x.tvb(x.at + 1, 1), x.tvb(x.at + 2, 1)
	x.tc = byte1:bitfield(1, 3)
	x.tag_high = byte1:bitfield(0, 1) * 512 + byte1:bitfield(4, 1) * 256
	x.ido = byte1:bitfield(5, 1) == 1
	x.ro, x.ns = byte2:bitfield(2, 1) == 1, byte2:bitfield(3, 1) == 1
	x.poisoned, x.digest = byte2:bitfield(1, 1) == 1, byte2:bitfield(0, 1) == 1
	x.address_type = byte2:bitfield(4, 2)
	local memory = class == "memory" or class == "atomic"
	x.th = byte1:bitfield(7, 1) == 1 and memory
	if class == "message" or class == "completion" then
		x.address_type = 0
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
	local byte1, byte2 = x.tvb(x.at + 1, 1), x.tvb(x.at + 2, 1)
	local names = { { "ido", "IDO", byte1 }, { "ro", "RO", byte2 }, { "ns", "NS", byte2 }, { "poisoned", "poisoned", byte2 } }
	x.tree:add(t.tc, byte1, x.tc)
	for _, name in ipairs(names) do
		x.tree:add(t[name[1]], name[3], x[name[1]])
	end
	x.tree:add(t.td, byte2, x.digest)
	x.tree:add(t.at, byte2, x.address_type)
	if x.tc ~= 0 then
		x.info = x.info .. ", TC" .. x.tc
	end
	for _, at in ipairs({ 2, 1, 3, 4 }) do
		if x[names[at][1]] then
			x.info = x.info .. ", " .. names[at][2]
		end
	end
	if x.th then
		x.tree:add(t.ph, x.tvb(x.at + x.header - 1, 1), x.tvb(x.at + x.header - 1, 1):bitfield(6, 2))
		local steering = x.at + (x.kind == "MWr" and 6 or 7)
		x.tree:add(t.st, x.tvb(steering, 1))
	end
	if x.poisoned then
		x.tree:add_proto_expert_info(e_poison)
	end
end

-- Payload and digest, and whether the bytes are as many as the header says.
local function read_rest(x)
	local start, on_wire = x.at + x.header, x.tvb:reported_len()
	local payload = x.data and x.length * 4 or 0
	local expected = start + payload + (x.digest and 4 or 0)
	local there = math.min(payload, math.max(x.tvb:len() - start, 0))
	if there > 0 then
		x.tree:add(t.payload, x.tvb(start, there))
	end
	if on_wire ~= expected then
		problem(x, "Length", string.format("the header says %d bytes, there are %d", expected - x.start, on_wire - x.start))
	elseif x.digest and x.tvb:len() == expected then
		local range = x.tvb(expected - 4, 4)
		x.tree:add(t.digest, range)
		local good = ecrc(x.tvb, x.covered, x.at, expected - 4) == range:le_uint()
		x.tree:add(t.ecrc, range, good and "good" or "bad"):set_generated()
		if not good then
			x.tree:add_proto_expert_info(e_ecrc)
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
	x.length = x.tvb(x.at + 2, 2):bitfield(6, 10)
	x.length = x.length == 0 and 1024 or x.length
	if known.class == "memory" or x.data and (known.class == "message" or known.class == "completion") then
		x.tree:add(t.length, x.tvb(x.at + 2, 2), x.length)
	end
	read_attributes(x, known.class)
	readers[known.class](x)
	show_attributes(x)
	read_rest(x)
	x.class = known.class
end

-- Shows the TLP that begins at `start`; gives the text of its line.
local function dissect_tlp(tvb, start, pinfo, parent)
	local tree = parent:add(tlp, tvb(start))
	local x = { tvb = tvb, start = start, tree = tree, problems = {}, info = "TLP" }
	read_prefixes(x)
	read_header(x)
	tree:append_text(": " .. x.info)
	for _, text in ipairs(x.problems) do
		tree:add(t.malformed, text):set_generated()
		tree:add_proto_expert_info(e_tlp, text)
	end
	if #x.problems > 0 then
		return x.info .. " [malformed: " .. x.problems[1] .. "]"
	end
	if x.key and not is_repeated() then
		if x.class == "completion" then
			completion_seen(pinfo, x.key, x.last)
		elseif x.kind ~= "MWr" and x.class ~= "message" then
			request_seen(pinfo, x.key)
		end
		show_links(pinfo, tree, x.class == "completion")
	end
	return x.info
end

-- NetTLP ------------------------------------------------------------------------------------------------------------------------

local function is_tlp_port(port)
	for _, range in ipairs(tables.tlp_ports) do
		if port >= range[1] and port <= range[2] then
			return true
		end
	end
	return false
end

local function channel_of(pinfo)
	return tables.control_ports[pinfo.dst_port] or tables.control_ports[pinfo.src_port]
end

-- Only zeros behind its six bytes: on the port that configuration space shares with TLPs.
local function is_padded(tvb)
	return tvb:len() >= 6 and (tvb:len() == 6 or not tvb(6):bytes():tohex():find("[^0]"))
end

local function control_error(tree, text)
	tree:add_proto_expert_info(e_control, text)
	return "malformed: " .. text
end

local function read_config(tvb, tree)
	if tvb:len() < 6 then
		return control_error(tree, "a config access has six bytes")
	end
	local command = tvb(0, 1):bitfield(0, 2)
	if command > 1 then
		return control_error(tree, "the command is neither 0 (read) nor 1 (write)")
	end
	local operation, mask, register = command == 0 and "read" or "write", tvb(0, 1):bitfield(2, 4), tvb(0, 2):bitfield(6, 10) * 4
	tree:add(c.operation, tvb(0, 1), operation)
	tree:add(c.mask, tvb(0, 1), mask)
	tree:add(c.register, tvb(0, 2), register)
	tree:add(c.data, tvb(2, 4))
	return string.format("config %s, mask 0x%x, reg 0x%03x, data 0x%08x", operation, mask, register, tvb(2, 4):uint())
end

local function read_registers(tvb, tree)
	local operations = { [0x10] = "read", [0x11] = "write" }
	if tvb:len() < 6 then
		return control_error(tree, "a register access has six bytes")
	end
	local operation, register = operations[tvb(0, 1):uint()], tvb(1, 1):uint()
	if not operation then
		return control_error(tree, "the operation is neither 0x10 (read) nor 0x11 (write)")
	elseif not tables.registers[register] then
		return control_error(tree, "there is no such register")
	end
	tree:add(c.operation, tvb(0, 1), operation)
	tree:add(c.register, tvb(1, 1)):append_text(" (" .. tables.registers[register] .. ")")
	tree:add_le(c.data, tvb(2, 4))
	return string.format("registers %s, reg 0x%02x %s, data 0x%08x", operation, register, tables.registers[register], tvb(2, 4):le_uint())
end

local function read_driver(tvb, tree)
	local length = tvb:reported_len()
	if tvb:len() < length or not (length == 2 or length == 4 or length == 8 or length == 192) then
		return control_error(tree, "a message has 2, 4, 8 or 192 bytes")
	end
	if length == 4 then
		local code = tvb(0, 4):le_uint()
		if not tables.requests[code] then
			return control_error(tree, "the question is none of 1, 2 and 3")
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
		return "message reply, BAR4 at 0x" .. tvb(0, 8):le_uint64():tohex():gsub("^0+", "")
	end
	for at = 0, length - 12, 12 do
		tree:add_le(c.address, tvb(at, 8))
		tree:add_le(c.data, tvb(at + 8, 4))
	end
	return "message reply, MSI-X table"
end

local drivers = { config = read_config, message = read_driver, registers = read_registers }

local function dissect_control(tvb, pinfo, parent, channel)
	local tree = parent:add(control, tvb())
	tree:add(c.channel, channel):set_generated()
	local info = drivers[channel](tvb, tree)
	tree:append_text(": " .. info)
	pinfo.cols.protocol = "NetTLP"
	pinfo.cols.info = info
end

-- Do the last four bytes of a frame check the others?
local function has_check_sequence()
	if eth_fcs() then
		return true
	end
	local frame = frame_bytes()
	local range = frame and frame.range
	if not range or range:len() ~= frame_len().value or range:len() < 60 then
		return false
	end
	local last, crc = range:len() - 4, 0xffffffff
	for at = 0, last - 1 do
		crc = crc32(crc, range(at, 1):uint())
	end
	return xor(crc, 0xffffffff) == range(last, 4):le_uint()
end

-- What is wrong with the frame around a datagram.
local function frame_problem(tvb)
	local total, header, udp = ip_len(), ip_hdr_len(), udp_length()
	if not (total and header and udp) then
		return nil
	end
	if udp.value ~= total.value - header.value then
		return string.format("the UDP header says %d bytes, the IPv4 header leaves %d", udp.value, total.value - header.value)
	end
	local ends = tvb:offset() + udp.value - 8
	if frame_len().value < ends then
		return string.format("the datagram should end at byte %d, but the frame has only %d bytes", ends, frame_len().value)
	end
	local tags = math.max(tvb:offset() - 14 - header.value - 8, 0)
	local length = frame_len().value
	if length > ends and length > 60 + tags and not (length - 4 <= math.max(ends, 60 + tags) and has_check_sequence()) then
		return string.format("%d bytes follow the datagram, more than Ethernet padding", frame_len().value - ends)
	end
	return nil
end

function nettlp.dissector(tvb, pinfo, root)
	dissected = pinfo.number
	local channel = channel_of(pinfo)
	local wrong = frame_problem(tvb)
	if not wrong and channel and (not is_tlp_port(pinfo.dst_port) or channel == "config" and is_padded(tvb)) then
		dissect_control(tvb, pinfo, root, channel)
		return tvb:len()
	end
	pinfo.cols.protocol = "NetTLP"
	local tree = root:add(nettlp, tvb(0, math.min(6, tvb:len())))
	if not wrong and tvb:reported_len() < 18 then
		wrong = string.format("the datagram has %d bytes; the NetTLP header and the smallest TLP take 18", tvb:reported_len())
	end
	if wrong or tvb:len() < 7 then
		wrong = wrong or "the headers were not captured whole"
		tree:add_proto_expert_info(e_frame, wrong)
		pinfo.cols.info = "malformed: " .. wrong
		return tvb:len()
	end
	local seq, tstamp = tvb(0, 2):uint(), tvb(2, 4):uint()
	tree:add(n.seq, tvb(0, 2))
	tree:add(n.tstamp, tvb(2, 4))
	sequence_seen(pinfo, seq, tstamp)
	show_sequence(pinfo, tree)
	pinfo.cols.info = dissect_tlp(tvb, 6, pinfo, root)
	return tvb:len()
end

-- Frames that end before the datagram in them never come to `nettlp`: Wireshark's UDP refuses them.
function check.dissector(tvb, pinfo, root)
	local port, source_port = udp_dstport(), udp_srcport()
	if not port or dissected == pinfo.number then
		return
	end
	if is_tlp_port(port.value) or tables.control_ports[port.value] or tables.control_ports[source_port.value] then
		root:add(check):add_proto_expert_info(e_length)
		pinfo.cols.protocol = "NetTLP"
		pinfo.cols.info = "malformed: the frame is shorter than the datagram in it"
	end
end

-- Links -------------------------------------------------------------------------------------------------------------------------

-- A DLLP stands behind the byte that tells the kind of unit.
local function dllp_crc(tvb)
	local crc = 0xffff
	for at = 1, 4 do
		crc = xor(floor(crc / 256), tables.crc16[xor(crc % 256, tvb(at, 1):uint()) + 1])
	end
	return xor(crc, 0xffff)
end

local function credits(tvb, tree)
	local fields = { { d.vc, 5, 3 }, { d.header_scale, 8, 2 }, { d.header, 10, 8 }, { d.data_scale, 18, 2 }, { d.data, 20, 12 } }
	local values = {}
	for number, field in ipairs(fields) do
		values[number] = tvb(1, 4):bitfield(field[2], field[3])
		tree:add(field[1], tvb(1, 4), values[number])
	end
	local function scaled(count, scale)
		return scale == 0 and count or count .. "<<" .. ({ 0, 2, 4 })[scale]
	end
	return string.format(", vc %d, hdr %s, data %s", values[1], scaled(values[3], values[2]), scaled(values[5], values[4]))
end

local function dissect_dllp(tvb, parent)
	local tree = parent:add(dllp, tvb())
	local function wrong(field, text)
		tree:add(d.malformed, field .. ": " .. text):set_generated()
		tree:add_proto_expert_info(e_dllp, field .. ": " .. text)
		tree:append_text(": malformed")
		return "DLLP [malformed: " .. field .. ": " .. text .. "]"
	end
	if tvb:len() ~= 7 then
		return wrong("DLLP", string.format("it has six bytes, there are %d", tvb:len() - 1))
	end
	local good = dllp_crc(tvb) == tvb(5, 2):le_uint()
	tree:add(d.crc, tvb(5, 2))
	tree:add(d.crc_status, tvb(5, 2), good and "good" or "bad"):set_generated()
	if not good then
		tree:add_proto_expert_info(e_crc)
		return wrong("CRC", "it does not match")
	end
	local known = tables.dllps[tvb(1, 1):uint()]
	if not known then
		return wrong("DLLP Type", "it is reserved")
	end
	tree:add(d.kind, tvb(1, 1), known.name)
	local info = known.name
	if known.class == "sequence" then
		tree:add(d.sequence, tvb(3, 2), tvb(3, 2):bitfield(4, 12))
		info = info .. ", seq " .. tvb(3, 2):bitfield(4, 12)
	elseif known.class == "credits" then
		info = info .. credits(tvb, tree)
	elseif known.class == "feature" then
		tree:add(d.ack, tvb(2, 1), tvb(2, 1):bitfield(0, 1) == 1)
		tree:add(d.supported, tvb(2, 3), tvb(2, 3):bitfield(1, 23))
	elseif known.class == "vendor" then
		tree:add(d.body, tvb(2, 3))
	end
	tree:append_text(": " .. info)
	return info
end

function link.dissector(tvb, pinfo, root)
	local name = frame_interface()
	local from, to = (name and tostring(name.value) or ""):match("^(.*) → (.*)$")
	if from then
		pinfo.cols.src, pinfo.cols.dst = from, to:gsub(" %(link layer%)$", "")
	end
	local tree = root:add(link, tvb())
	if tvb:len() == 0 then
		return 0
	end
	local kind = tvb(0, 1):uint()
	tree:add(l.kind, tvb(0, 1))
	if tables.link_units[kind] == "DLLP" then
		pinfo.cols.protocol = "DLLP"
		pinfo.cols.info = dissect_dllp(tvb, root)
	elseif tables.link_units[kind] == "flit" and tvb:len() >= 3 then
		pinfo.cols.protocol = "flit"
		tree:add(l.flit_sequence, tvb(1, 2))
		pinfo.cols.info = "Flit, seq " .. tvb(1, 2):uint()
	else
		tree:add_expert_info(PI_MALFORMED, PI_ERROR, "Unknown kind of unit")
		pinfo.cols.info = "malformed: an unknown kind of unit"
	end
	return tvb:len()
end

local ports = DissectorTable.get("udp.port")
for _, range in ipairs(tables.tlp_ports) do
	ports:add(string.format("%d-%d", range[1], range[2]), nettlp)
end
for port in pairs(tables.control_ports) do
	ports:add(port, nettlp)
end
DissectorTable.get("wtap_encap"):add((wtap_encaps or wtap).USER0, link)
register_postdissector(check)
