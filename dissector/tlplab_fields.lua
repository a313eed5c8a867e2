-- The protocols with their fields, and what can be said against a frame. A part of tlplab.lua.

return function(tables)
	local groups, severities = expert.group, expert.severity

	local nettlp = Proto("nettlp", "NetTLP")
	local control = Proto("nettlp_control", "NetTLP control")
	local tlp = Proto("tlp", "PCI Express TLP")
	local dllp = Proto("dllp", "PCI Express DLLP")
	local link = Proto("pcie_link", "PCI Express link unit")
	local check = Proto("nettlp_check", "NetTLP frame check")

	local n = {
		seq = ProtoField.uint16("nettlp.seq", "Sequence number"),
		tstamp = ProtoField.uint32("nettlp.tstamp", "Time stamp (6.4 ns)"),
		sequence = ProtoField.uint32("nettlp.link.sequence", "Number on the link"),
		acknowledged = ProtoField.uint32("nettlp.link.acknowledged", "First number not received"),
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
		writes = ProtoField.uint64("nettlp_control.writes", "Writes"),
		bytes_written = ProtoField.uint64("nettlp_control.bytes_written", "Bytes written"),
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
		status = ProtoField.uint8("tlp.status", "Completion status", base.DEC, tables.status_meanings),
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

	local experts = {
		tlp = ProtoExpert.new("tlp.malformed.expert", "Malformed TLP", groups.MALFORMED, severities.ERROR),
		ecrc = ProtoExpert.new("tlp.ecrc.bad", "The ECRC does not match", groups.CHECKSUM, severities.ERROR),
		refused = ProtoExpert.new("tlp.status.refused", "The request was not carried out", groups.RESPONSE_CODE, severities.WARN),
		poisoned = ProtoExpert.new("tlp.poisoned.expert", "The data are poisoned", groups.RESPONSE_CODE, severities.WARN),
		unexpected = ProtoExpert.new("tlp.unexpected", "No request in the capture waits for this completion", groups.SEQUENCE, severities.NOTE),
		dllp = ProtoExpert.new("dllp.malformed.expert", "Malformed DLLP", groups.MALFORMED, severities.ERROR),
		crc = ProtoExpert.new("dllp.crc.bad", "The CRC does not match", groups.CHECKSUM, severities.ERROR),
		unit = ProtoExpert.new("pcie_link.malformed", "Neither a DLLP nor a flit", groups.MALFORMED, severities.ERROR),
		gap = ProtoExpert.new("nettlp.gap", "Sequence numbers are missing", groups.SEQUENCE, severities.WARN),
		leap = ProtoExpert.new("nettlp.leap", "Sequence numbers leap", groups.SEQUENCE, severities.NOTE),
		again = ProtoExpert.new("nettlp.duplicate", "A sequence number that was there already, or is late", groups.SEQUENCE, severities.WARN),
		frame = ProtoExpert.new("nettlp.malformed", "The frame contradicts itself", groups.MALFORMED, severities.ERROR),
		control = ProtoExpert.new("nettlp_control.malformed", "No access to the adapter", groups.MALFORMED, severities.ERROR),
		short = ProtoExpert.new("nettlp_check.malformed", "The frame is shorter than the datagram in it", groups.MALFORMED, severities.ERROR),
	}
	tlp.experts = { experts.tlp, experts.ecrc, experts.refused, experts.poisoned, experts.unexpected }
	dllp.experts = { experts.dllp, experts.crc }
	link.experts = { experts.unit }
	nettlp.experts = { experts.gap, experts.leap, experts.again, experts.frame }
	control.experts = { experts.control }
	check.experts = { experts.short }

	return {
		protocols = { nettlp = nettlp, control = control, tlp = tlp, dllp = dllp, link = link, check = check },
		experts = experts,
		nettlp = n,
		control = c,
		tlp = t,
		dllp = d,
		link = l,
	}
end
