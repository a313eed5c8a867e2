-- What simulated links carry beside TLPs: DLLPs and flits. A part of tlplab.lua.

return function(fields, tables, bytes)
	local d, l, experts, layouts = fields.dllp, fields.link, fields.experts, tables.layouts
	local frame_interface = Field.new("frame.interface_name")

	-- A DLLP stands behind the byte that tells the kind of unit.
	local START = 1

	local function show(tvb, tree, layout, name)
		local value, range = bytes.read(tvb, START, layouts[layout][name])
		tree:add(d[name], range, value)
		return value
	end

	local function scaled(count, scale)
		return scale == 0 and count or count .. "<<" .. ({ 0, 2, 4 })[scale]
	end

	-- What each class of DLLPs has behind its type.
	local readers = {
		sequence = function(tvb, tree)
			return ", seq " .. show(tvb, tree, "sequence", "sequence")
		end,
		credits = function(tvb, tree)
			local channel = show(tvb, tree, "credits", "vc")
			local header_scale, header = show(tvb, tree, "credits", "header_scale"), show(tvb, tree, "credits", "header")
			local data_scale, data = show(tvb, tree, "credits", "data_scale"), show(tvb, tree, "credits", "data")
			return string.format(", vc %d, hdr %s, data %s", channel, scaled(header, header_scale), scaled(data, data_scale))
		end,
		feature = function(tvb, tree)
			local ack, range = bytes.read(tvb, START, layouts.feature.ack)
			tree:add(d.ack, range, ack == 1)
			show(tvb, tree, "feature", "supported")
			return ""
		end,
		vendor = function(tvb, tree)
			tree:add(d.body, tvb(START + 1, 3))
			return ""
		end,
		plain = function()
			return ""
		end,
	}

	local function dissect_dllp(tvb, parent)
		local tree = parent:add(fields.protocols.dllp, tvb())
		local function wrong(field, text)
			tree:add(d.malformed, field .. ": " .. text):set_generated()
			tree:add_proto_expert_info(experts.dllp, field .. ": " .. text)
			tree:append_text(": malformed")
			return "DLLP [malformed: " .. field .. ": " .. text .. "]"
		end
		if tvb:len() ~= 7 then
			return wrong("DLLP", string.format("it has six bytes, there are %d", tvb:len() - 1))
		end
		local crc, range = bytes.read(tvb, START, layouts.dllp.crc)
		local good = crc == bytes.crc16(START, START + 4, function(at)
			return tvb(at, 1):uint()
		end)
		tree:add(d.crc, range)
		tree:add(d.crc_status, range, good and "good" or "bad"):set_generated()
		if not good then
			tree:add_proto_expert_info(experts.crc)
			return wrong("CRC", "it does not match")
		end
		local known = tables.dllps[tvb(START, 1):uint()]
		if not known then
			return wrong("DLLP Type", "it is reserved")
		end
		tree:add(d.kind, tvb(START, 1), known.name)
		local info = known.name .. readers[known.class](tvb, tree)
		tree:append_text(": " .. info)
		return info
	end

	-- Shows a unit; gives the protocol it is of and the text of its line.
	local function dissect_unit(tvb, tree, root)
		local kind = tvb:len() > 0 and tvb(0, 1):uint()
		local name = tables.link_units[kind]
		if kind then
			tree:add(l.kind, tvb(0, 1))
		end
		if name == "DLLP" then
			return name, dissect_dllp(tvb, root)
		elseif name == "flit" and tvb:len() >= 3 then
			tree:add(l.flit_sequence, tvb(1, 2))
			return name, "Flit, seq " .. tvb(1, 2):uint()
		end
		local wrong = string.format("the link unit header is cut: only %d bytes were captured", tvb:len())
		if kind and not name then
			wrong = string.format("unknown kind 0x%02x of link unit", kind)
		end
		tree:add_proto_expert_info(experts.unit, wrong)
		return "link unit", "malformed: " .. wrong
	end

	return function(tvb, pinfo, root)
		local name = frame_interface()
		local from, to = (name and tostring(name.value) or ""):match("^(.*) → (.*)$")
		if from then
			pinfo.cols.src, pinfo.cols.dst = from, to:gsub(" %(link layer%)$", "")
		end
		pinfo.cols.protocol, pinfo.cols.info = dissect_unit(tvb, root:add(fields.protocols.link, tvb()), root)
		return tvb:len()
	end
end
