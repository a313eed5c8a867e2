-- What belongs together in a capture: requests and their completions, sequence numbers of one adapter. A part of tlplab.lua.

return function(fields, tables)
	local floor, t, experts = math.floor, fields.tlp, fields.experts
	local frame_time = Field.new("frame.time_relative")
	local frame_comment = Field.new("frame.comment")
	local conversations = {}

	-- What is remembered of a file:
	local waiting -- requests by direction, requester and tag: frame and time
	local requests -- by the frame of a completion: frame of the request and the time since
	local responses -- by the frame of a request: frame of its last completion
	local unexpected -- frames of completions that answer nothing
	local clocks -- adapters by direction
	local notes -- by frame: what is odd about its sequence number

	-- Another file.
	function conversations.reset()
		waiting, requests, responses, unexpected, clocks, notes = {}, {}, {}, {}, {}, {}
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

	-- Did as much time pass on the adapter's clock as in the capture? Two adapters may have one address.
	local function could_send(adapter, tstamp, time)
		local range = 2 ^ 32 * tables.tick_ns
		local passed = time - adapter.time
		local apart = math.abs(passed % range - (tstamp - adapter.tstamp) % 2 ^ 32 * tables.tick_ns)
		return math.min(apart, range - apart) <= 1e6 + passed / 1000
	end

	function conversations.sequence_seen(pinfo, seq, tstamp)
		if pinfo.visited or (seq == 0 and tstamp == 0) then
			return
		end
		local key, time = way(pinfo.src, pinfo.dst), now()
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

	function conversations.show_sequence(pinfo, tree)
		local missing = notes[pinfo.number]
		if missing == 0 then
			tree:add_proto_expert_info(experts.again)
		elseif missing then
			tree:add_proto_expert_info(experts.gap, string.format("%d sequence numbers are missing before this one", missing))
		end
	end

	return conversations
end
