-- Wireshark dissector for NetTLP, and for the captures that tlplab writes of simulated links.
--
-- It shows TLPs of all types, DLLPs, flits and the datagrams beside them (configuration space, messages, registers); links requests
-- with their completions; and says what is malformed. Its parts, tlplab_*.lua, have to lie in the same folder. Each gives back a table or a
-- function and does nothing else, so that Wireshark, which loads every script of its folders, may load them by themselves.
-- Runs on the Lua of every Wireshark since 4.0 (5.2 to 5.4).
--
-- Display filters: tlp.kind == "MRd", tlp.tag == 3, tlp.requester == "1b:00.0", tlp.latency > 0.00001, tlp.malformed, nettlp.gap, ...

local source = debug.getinfo(1, "S").source:sub(2)
local folder = source:match("^(.*[/\\])") or ""

local function part(name)
	return dofile(folder .. "tlplab_" .. name .. ".lua")
end

local tables = part("tables") -- names, codes and where fields lie: generated
local fields = part("fields")(tables)
local bytes = part("bytes")(tables)
local conversations = part("conversations")(fields, part("numbers")(tables))
local dissect_tlp = part("tlp")(fields, tables, bytes, conversations)
local dissect_control = part("control")(fields, tables, bytes)
local dissect_link = part("link")(fields, tables, bytes)

local nettlp, link, check = fields.protocols.nettlp, fields.protocols.link, fields.protocols.check
local experts = fields.experts

local frame_bytes = Field.new("frame")
local frame_len = Field.new("frame.len")
local ip_len = Field.new("ip.len")
local ip_hdr_len = Field.new("ip.hdr_len")
local udp_length = Field.new("udp.length")
local udp_dstport = Field.new("udp.dstport")
local udp_srcport = Field.new("udp.srcport")

local dissected -- the last frame that came to `nettlp`

function nettlp.init()
	conversations.reset()
	dissected = 0
end

-- Ports -------------------------------------------------------------------------------------------------------------------------

local function is_tlp_port(port)
	for _, range in ipairs(tables.tlp_ports) do
		if port >= range[1] and port <= range[2] then
			return true
		end
	end
	return false
end

local function channel_of(destination, origin)
	return tables.control_ports[destination] or tables.control_ports[origin]
end

-- Only zeros behind its six bytes: on the port that configuration space shares with TLPs.
local function is_padded(tvb)
	return tvb:len() >= 6 and (tvb:len() == 6 or not tvb(6):bytes():tohex():find("[^0]"))
end

-- Frames ------------------------------------------------------------------------------------------------------------------------

-- Do the last four bytes of a frame check the others? If they were not captured, it is enough that they are just four behind the datagram.
local function has_check_sequence(length, ends)
	local frame = frame_bytes()
	local range = frame and frame.range
	if not range or range:len() < length then
		return length == ends + 4
	end
	return range(length - 4, 4):le_uint() == bytes.crc32(0, length - 4, function(at)
		return range(at, 1):uint()
	end)
end

-- What is wrong with the frame around a datagram.
local function frame_problem(tvb)
	local total, header, udp = ip_len(), ip_hdr_len(), udp_length()
	if not (total and header and udp) then
		return nil
	end
	if udp.value ~= total.value - header.value then
		return string.format("the UDP length is %d bytes, but the IPv4 header leaves %d", udp.value, total.value - header.value)
	end
	local length, ends = frame_len().value, tvb:offset() + udp.value - 8
	if length < ends then
		return string.format("the datagram should end at byte %d, but the frame has only %d bytes", ends, length)
	end
	-- Ethernet has 46 bytes of payload at least, whatever stands in front of it; frames that are IP and nothing else are not padded.
	local front = tvb:offset() - 8 - header.value
	local padded = front > 0 and front + 46 or 0
	if length > ends and length > padded and not (length - 4 <= math.max(ends, padded) and has_check_sequence(length, ends)) then
		return string.format("%d bytes follow the datagram, more than Ethernet padding", length - ends)
	end
	return nil
end

-- NetTLP ------------------------------------------------------------------------------------------------------------------------

-- Does the checksum behind a TLP of an acknowledged link fit? If not all was captured, nobody knows.
local function is_whole(tvb)
	local length = tvb:len()
	if length < tvb:reported_len() then
		return length >= 6 + tables.link.numbers
	end
	local covered = length - tables.link.check
	return covered > 6 + tables.link.numbers
		and tvb(10, 1):uint() == 0
		and tvb(covered, 4):le_uint() == bytes.crc32(0, covered, function(at)
			return tvb(at, 1):uint()
		end)
end

-- Shows a datagram; gives the text of its line.
local function dissect_datagram(tvb, pinfo, root)
	local wrong, channel = frame_problem(tvb), channel_of(pinfo.dst_port, pinfo.src_port)
	if not wrong and channel and (not is_tlp_port(pinfo.dst_port) or channel == "config" and is_padded(tvb)) then
		return dissect_control(tvb, root, channel)
	end
	local tree = root:add(nettlp, tvb(0, math.min(6, tvb:len())))
	if not wrong and tvb:reported_len() < 18 then
		wrong = string.format("the datagram has %d bytes, but the NetTLP header and the smallest TLP take 18", tvb:reported_len())
	elseif not wrong and tvb:len() < 7 then
		wrong = "the headers were not captured whole"
	end
	local sealed = not wrong and tvb(6, 1):uint() == tables.link.mark
	if sealed and not is_whole(tvb) then
		wrong = "a damaged TLP on an acknowledged link"
	end
	if wrong then
		if is_tlp_port(pinfo.dst_port) then
			conversations.sequence_unread(pinfo)
		end
		tree:add_proto_expert_info(experts.frame, wrong)
		return "malformed: " .. wrong
	end
	local function show(name)
		local value, range = bytes.read(tvb, 0, tables.layouts.nettlp[name])
		tree:add(fields.nettlp[name], range, value)
		return value
	end
	conversations.sequence_seen(pinfo, show("seq"), show("tstamp"))
	conversations.show_sequence(pinfo, tree)
	if not sealed then
		return dissect_tlp(tvb, 6, pinfo, root)
	end
	for _, name in ipairs({ "sequence", "acknowledged" }) do
		local value, range = bytes.read(tvb, 6, tables.layouts.numbers[name])
		tree:add(fields.nettlp[name], range, value)
	end
	return dissect_tlp(tvb, 6 + tables.link.numbers, pinfo, root, tables.link.check)
end

function nettlp.dissector(tvb, pinfo, root)
	dissected = pinfo.number
	pinfo.cols.protocol = "NetTLP"
	pinfo.cols.info = dissect_datagram(tvb, pinfo, root)
	return tvb:len()
end

-- Frames that end before the datagram in them never come to `nettlp`: Wireshark's UDP refuses them.
function check.dissector(_, pinfo, root)
	local port, source_port = udp_dstport(), udp_srcport()
	if not port or dissected == pinfo.number then
		return
	end
	if is_tlp_port(port.value) or channel_of(port.value, source_port.value) then
		if is_tlp_port(port.value) then
			conversations.sequence_unread(pinfo)
		end
		root:add(check):add_proto_expert_info(experts.short)
		pinfo.cols.protocol = "NetTLP"
		pinfo.cols.info = "malformed: the frame is shorter than the datagram in it"
	end
end

link.dissector = dissect_link

local ports = DissectorTable.get("udp.port")
for _, range in ipairs(tables.tlp_ports) do
	ports:add(string.format("%d-%d", range[1], range[2]), nettlp)
end
for port in pairs(tables.control_ports) do
	ports:add(port, nettlp)
end
DissectorTable.get("wtap_encap"):add((wtap_encaps or wtap).USER0, link)
register_postdissector(check)
