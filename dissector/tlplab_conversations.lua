-- What belongs together in a capture: requests and their completions, sequence numbers of one sender. A part of tlplab.lua.

return function(fields, numbers)
	local floor, t, experts = math.floor, fields.tlp, fields.experts
	local frame_time = Field.new("frame.time_relative")
	local frame_comment = Field.new("frame.comment")
	local conversations = {}

	-- What is remembered of a file:
	local waiting -- requests by direction, requester and tag: frame and time
	local requests -- by the frame of a completion: frame of the request and the time since
	local responses -- by the frame of a request: frame of its last completion
	local unexpected -- frames of completions that answer nothing

	-- Another file.
	function conversations.reset()
		waiting, requests, responses, unexpected = {}, {}, {}, {}
		numbers.reset()
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
	function conversations.is_repeated()
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

	-- By address: a captured link has one at each end, and every node of a simulated fabric has its own.
	local function way(from, to)
		return tostring(from) .. ">" .. tostring(to)
	end

	function conversations.request_seen(pinfo, key)
		if not pinfo.visited then
			waiting[way(pinfo.src, pinfo.dst) .. "#" .. key] = { frame = pinfo.number, time = now() }
		end
	end

	function conversations.completion_seen(pinfo, key, last)
		if pinfo.visited then
			return
		end
		local asked = way(pinfo.dst, pinfo.src) .. "#" .. key
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

	function conversations.show_links(pinfo, tree, completion)
		if completion then
			local request = requests[pinfo.number]
			if request then
				tree:add(t.response_to, request.frame):set_generated()
				local seconds = floor(request.latency / 1e9)
				tree:add(t.latency, NSTime.new(seconds, floor(request.latency - seconds * 1e9 + 0.5))):set_generated()
			elseif unexpected[pinfo.number] then
				tree:add_proto_expert_info(experts.unexpected)
			end
		elseif responses[pinfo.number] then
			tree:add(t.response_in, responses[pinfo.number]):set_generated()
		end
	end

	function conversations.sequence_seen(pinfo, seq, tstamp)
		if not pinfo.visited then
			numbers.seen(way(pinfo.src, pinfo.dst), pinfo.number, seq, tstamp, pinfo.dst_port, now())
		end
	end

	-- A datagram of a TLP whose number cannot be read: it may be any that is missing.
	function conversations.sequence_unread(pinfo)
		if not pinfo.visited then
			numbers.unread(way(pinfo.src, pinfo.dst))
		end
	end

	function conversations.show_sequence(pinfo, tree)
		local what, missing, frame = numbers.at(pinfo.number, pinfo.visited)
		if what == "again" then
			tree:add_proto_expert_info(experts.again)
		elseif what == "gap" then
			local place = frame and "frame " .. frame or "this one"
			tree:add_proto_expert_info(experts.gap, string.format("%d sequence numbers are missing before %s", missing, place))
		elseif what == "leap" then
			local text = "%d sequence numbers are passed over here; that proves no loss: they may be late, or this is another counter"
			tree:add_proto_expert_info(experts.leap, string.format(text, missing))
		end
	end

	return conversations
end
