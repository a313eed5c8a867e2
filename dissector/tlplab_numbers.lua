-- The running numbers of adapters: which are missing for certain. The rule is that of `tlplab dump --summary` (its reasons are in
-- crates/capture/src/summary/sequence): numbers decide, stamps by their order, and time only after a great leap. A part of tlplab.lua.

return function(tables)
	local floor, abs = math.floor, math.abs
	local SECOND, ROUND, RANGE = 156250000, 2 ^ 32, 65536 -- in ticks of 6.4 ns; of stamps; of numbers
	local NEAR, OVERTAKEN, DRIFT = 4096, 1024, 50
	local STEADY, UNSTEADY = SECOND / 1000, SECOND / 10
	local MOST, ITS_OWN, PARTED, REMEMBERED, CERTAIN = 64, 8, 8, 65536, 1024

	-- Ticks on the sender's clock from one datagram to another: the stamps tell them but for whole rounds, which the capture's times decide.
	local function passed(a, b)
		local told, captured = (b.stamp - a.stamp) % ROUND, b.at - a.at
		return told + floor((captured - told + ROUND / 2) / ROUND) * ROUND
	end

	local function shift(a, b)
		return passed(a, b) - (b.at - a.at)
	end

	local function agrees(a, b)
		return abs(shift(a, b)) <= SECOND + abs(b.at - a.at) / DRIFT
	end

	local function numbered(mark, number)
		return { number = number, stamp = mark.stamp, at = mark.at, frame = mark.frame }
	end

	local function shares(some, others)
		for port in pairs(some) do
			if others[port] then
				return true
			end
		end
		return false
	end

	-- Where a datagram may belong: class, foreign port, numbers and ticks that it is off; the place, the leap and the number there. ---------

	local function leap_around(counter, number)
		for n = #counter.leaps, 1, -1 do
			local leap = counter.leaps[n]
			if leap.before.number < number then
				return number < leap.after.number and n or nil
			end
		end
	end

	local function inside(counter, number, mark, foreign)
		local first = counter.first
		if number < first.number then
			local under = first.number - number
			if under <= OVERTAKEN and passed(mark, first) >= 0 and agrees(mark, first) then
				return { 2, foreign, under, abs(shift(mark, first)), "overtaken", nil, number }
			end
			return nil
		end
		local at = leap_around(counter, number)
		if not at then
			return nil
		end
		local leap = counter.leaps[at]
		local ahead, off, older = number - leap.before.number, abs(shift(leap.before, mark)), passed(leap.before, mark) < 0
		if not older and passed(mark, leap.after) >= 0 then
			return { 1, foreign, ahead, off, "late", at, number }
		elseif not agrees(leap.before, mark) then
			return nil
		elseif older then
			return { 4, foreign, ahead, off, "late", at, number }
		end
		return { ahead == 1 and 0 or 2, foreign, ahead, off, "goes on", at, number }
	end

	local function place(counter, mark, port)
		local newest = counter.newest
		local foreign, ahead = counter.ports[port] and 0 or 1, (mark.number - newest.number) % RANGE
		local off, above = abs(shift(newest, mark)), newest.number + ahead
		if ahead >= 1 and ahead <= NEAR and agrees(newest, mark) and passed(newest, mark) >= 0 then
			return { ahead == 1 and 0 or 2, foreign, ahead, off, "ahead", nil, above }
		end
		local found = inside(counter, newest.number - (newest.number - mark.number) % RANGE, mark, foreign)
		if not found and ahead == 1 then
			return { 3, foreign, 1, off, "ahead", nil, above }
		end
		return found
	end

	local function better(a, b)
		for n = 0, 4 do
			if a[n] ~= b[n] then
				return a[n] < b[n]
			end
		end
		return false
	end

	-- One sender --------------------------------------------------------------------------------------------------------------------

	local senders, places, certain, again

	local function reset()
		senders, places, certain, again = {}, {}, {}, {}
	end

	-- A leap is shown at the frame that made it, also if what comes late makes two of it.
	local function new_leap(sender, leap)
		leap.sender, leap.seen, leap.frame = sender, sender.seen, leap.frame or leap.after.frame
		places[leap.frame] = places[leap.frame] or {}
		table.insert(places[leap.frame], leap)
		sender.last = sender.last + 1
		sender.open[sender.last] = leap
		return leap
	end

	local function add_port(counter, port)
		counter.ports[port] = true
		if counter.tentative then
			counter.tentative = false
			for _, leap in ipairs(counter.leaps) do
				if leap.unproven and leap.unproven[port] then
					leap.unproven = nil
				end
				counter.tentative = counter.tentative or leap.unproven ~= nil
			end
		end
	end

	local function copy(set, without)
		local all = {}
		for port in pairs(set) do
			all[port] = not (without and without[port]) or nil
		end
		return all
	end

	local function take_ahead(sender, counter, mark, port)
		local newest = counter.newest
		if mark.number == newest.number + 1 then
			local off = shift(newest, mark)
			counter.most = math.max(counter.most, abs(off))
			counter.sum, counter.time = counter.sum + off, counter.time + mark.at - newest.at
		else
			local unproven = not counter.ports[port] and copy(counter.ports) or nil
			counter.tentative = counter.tentative or unproven ~= nil
			counter.leaps[#counter.leaps + 1] = new_leap(sender, { before = newest, after = mark, unproven = unproven })
		end
		counter.newest = mark
		add_port(counter, port)
	end

	local function take_late(sender, counter, at, mark, port)
		local leap = table.remove(counter.leaps, at)
		leap.gone = true
		for _, ends in ipairs({ { mark, leap.after }, { leap.before, mark } }) do
			if ends[2].number > ends[1].number + 1 then
				local rest = { before = ends[1], after = ends[2], unproven = leap.unproven, frame = leap.frame }
				table.insert(counter.leaps, at, new_leap(sender, rest))
			end
		end
		add_port(counter, port)
	end

	local function take_overtaken(sender, counter, mark, port)
		if mark.number + 1 < counter.first.number then
			table.insert(counter.leaps, 1, new_leap(sender, { before = mark, after = counter.first }))
		end
		counter.first = mark
		add_port(counter, port)
	end

	-- Gives what is behind a leap to a counter of its own.
	local function part(sender, counter, at)
		local leap = counter.leaps[at]
		local own = {}
		for port, owner in pairs(sender.owners) do
			own[port] = owner.id == counter.id and not (leap.unproven and leap.unproven[port]) or nil
		end
		local behind = { id = counter.id, first = leap.after, newest = counter.newest, leaps = {}, ports = own }
		behind.tentative, behind.most, behind.sum, behind.time = counter.tentative, counter.most, counter.sum, counter.time
		for n = #counter.leaps, at, -1 do
			local moved = table.remove(counter.leaps)
			if n > at then
				table.insert(behind.leaps, 1, moved)
			end
		end
		leap.gone = true
		sender.ids, sender.parted = sender.ids + 1, sender.parted + 1
		counter.ports = copy(counter.ports, own)
		for port in pairs(leap.unproven or {}) do
			counter.ports[port] = true
		end
		counter.id, counter.newest = sender.ids, leap.before
		sender.counters[#sender.counters + 1] = behind
	end

	-- The counter that a new one may be, after a great leap.
	local function ancestor(sender, mark, port)
		local taken, latest = {}, nil
		for _, counter in ipairs(sender.counters) do
			if counter.ancestor then
				taken[counter.ancestor.id] = true
			end
		end
		for _, counter in ipairs(sender.counters) do
			local newest = counter.newest
			local leap = (mark.number - newest.number) % RANGE
			local possible = not taken[counter.id] and counter.ports[port] and mark.number > 1
			if possible and passed(newest, mark) >= leap and agrees(newest, mark) and not (latest and newest.at < latest.newest.at) then
				latest = counter
			end
		end
		return latest and { id = latest.id, last = latest.newest, most = latest.most, sum = latest.sum, time = latest.time }
	end

	local function begin(sender, mark, port)
		local found = ancestor(sender, mark, port)
		if #sender.counters == MOST then
			local oldest = 1
			for n, counter in ipairs(sender.counters) do
				if counter.newest.at < sender.counters[oldest].newest.at then
					oldest = n
				end
			end
			table.remove(sender.counters, oldest)
		end
		sender.ids = sender.ids + 1
		local first = numbered(mark, mark.number + 2 * RANGE)
		local counter = { id = sender.ids, first = first, newest = first, leaps = {}, ports = { [port] = true }, most = 0, sum = 0, time = 0 }
		counter.ancestor = found
		sender.counters[#sender.counters + 1] = counter
		if found then
			new_leap(sender, { counter = counter, after = first })
		end
	end

	local function sent(sender, counter, mark, port)
		local owner = sender.owners[port]
		if owner and owner.id == counter.id then
			owner.times = owner.times + 1
		else
			sender.owners[port] = { id = counter.id, times = 1 }
		end
		for _, other in ipairs(sender.counters) do
			if other.ancestor and other.ancestor.id == counter.id then
				if passed(mark, other.first) > 0 then
					other.ancestor.last = mark
				else
					other.ancestor = nil
				end
			end
		end
	end

	local function is_copy(sender, mark, port)
		local key = mark.number .. "/" .. mark.stamp .. "/" .. port
		if sender.known[key] then
			return true
		end
		local at = sender.seen % REMEMBERED
		if sender.order[at] then
			sender.known[sender.order[at]] = nil
		end
		sender.known[key], sender.order[at] = true, key
		return false
	end

	-- What is missing for certain ---------------------------------------------------------------------------------------------------

	local function same_clock(before, after, steps)
		local time, off, unsteady = after.at - before.at, shift(before, after), 0
		for _, step in ipairs(steps) do
			unsteady = math.max(unsteady, step.most)
		end
		local allowed = STEADY + math.min(2 * unsteady, UNSTEADY) + abs(time) / DRIFT
		if abs(off) <= allowed then
			return true
		end
		for _, step in ipairs(steps) do
			if step.time > 0 and step.time >= time and abs(off - step.sum * time / step.time) <= allowed then
				return true
			end
		end
		return false
	end

	-- By how many numbers a counter ends behind the place where `other` begins, if both are one that was mixed up.
	local function goes_on_as(counter, other)
		local first, newest = other.first, counter.newest
		local behind = (newest.number + 1 - first.number + RANGE / 2) % RANGE - RANGE / 2
		local mixed = first.number % RANGE > 1 and not other.ancestor and abs(behind) <= NEAR and agrees(newest, first)
		return mixed and abs(passed(newest, first)) <= SECOND / 10 and passed(newest, other.newest) > 0 and math.max(behind, 0) or nil
	end

	-- Was `other` begun in the midst of a counter, by the same clock?
	local function runs_beside(counter, other)
		local midst = counter.first.at < other.first.at and other.first.at < counter.newest.at
		return midst and agrees(counter.newest, other.newest)
	end

	local function is_mixed_with(counter, other, many)
		local new = other.first.number % RANGE > 1 and not other.ancestor
		return new and runs_beside(counter, other) and (many or shares(counter.ports, other.ports))
	end

	local function third_beside(sender, one, other)
		for _, counter in ipairs(sender.counters) do
			if counter.id ~= one.id and counter.id ~= other.id and runs_beside(counter, other) then
				return true
			end
		end
		return false
	end

	-- Numbers that may be counted twice, as counters were mixed up, and those that could not be read.
	local function doubtful(sender)
		local ended, begun, twice = {}, {}, sender.unread
		for n, counter in ipairs(sender.counters) do
			ended[n], begun[n] = counter, counter
		end
		table.sort(begun, function(a, b)
			return a.first.at < b.first.at
		end)
		for _, other in ipairs(begun) do
			local best, at
			for n, counter in ipairs(ended) do
				local behind = counter.id ~= other.id and third_beside(sender, counter, other) and goes_on_as(counter, other)
				if behind and (not best or behind < best) then
					best, at = behind, n
				end
			end
			if best then
				table.remove(ended, at)
				twice = twice + best
			else
				for _, counter in ipairs(sender.counters) do
					if is_mixed_with(counter, other, sender.parted > PARTED) then
						return math.huge
					end
				end
			end
		end
		return twice
	end

	-- How many numbers a leap passes over that have not come, and whether they are missing for certain.
	local function judge(leap)
		if leap.gone then
			return 0, false
		elseif not leap.counter then
			local missing = leap.after.number - leap.before.number - 1
			return missing, not leap.unproven and missing > doubtful(leap.sender)
		end
		local counter = leap.counter
		local old = counter.ancestor
		if not old then
			return 0, false
		end
		local missing = (counter.first.number - old.last.number) % RANGE - 1
		local begins = counter.first.number % RANGE <= NEAR
		return missing, not begins and same_clock(old.last, counter.first, { old, counter }) and missing > doubtful(leap.sender)
	end

	-- By the time a thousand more of each counter have come, nobody is late any more.
	local function confirm(sender, frame)
		local leap = sender.open[sender.next]
		while leap and (leap.gone or sender.seen - leap.seen >= CERTAIN * #sender.counters) do
			local missing, proven = judge(leap)
			if proven then
				certain[frame] = { missing = missing, frame = leap.frame }
			end
			sender.open[sender.next] = nil
			sender.next = sender.next + 1
			leap = sender.open[sender.next]
		end
	end

	-- What others use ---------------------------------------------------------------------------------------------------------------

	local numbers = { reset = reset }

	-- A datagram of a sender, at so many nanoseconds.
	function numbers.seen(key, frame, seq, stamp, port, time)
		local sender = senders[key]
		if not sender then
			sender = { counters = {}, ids = 0, owners = {}, parted = 0, unread = 0, seen = 0, known = {}, order = {}, open = {}, next = 1, last = 0 }
			senders[key] = sender
		end
		local mark = { number = seq, stamp = stamp, at = floor(time / tables.tick_ns), frame = frame }
		local owner, best, chosen = sender.owners[port], nil, nil
		for _, counter in ipairs(sender.counters) do
			local found = place(counter, mark, port)
			if found then
				found[0] = owner and owner.times >= ITS_OWN and owner.id ~= counter.id and 1 or 0
				if not best or better(found, best) then
					best, chosen = found, counter
				end
			end
		end
		-- Who does not count sends zeros, and who does comes by them, too.
		if seq == 0 and stamp == 0 and not (best and best[1] == 0) then
			return
		end
		if is_copy(sender, mark, port) then
			again[frame] = true
			return
		end
		sender.seen = sender.seen + 1
		if not best then
			begin(sender, mark, port)
		else
			mark.number = best[7]
			if best[5] == "late" then
				take_late(sender, chosen, best[6], mark, port)
				again[frame] = true
			elseif best[5] == "overtaken" then
				take_overtaken(sender, chosen, mark, port)
				again[frame] = true
			else
				if best[5] == "goes on" then
					part(sender, chosen, best[6])
				end
				take_ahead(sender, chosen, mark, port)
				sent(sender, chosen, mark, port)
			end
		end
		confirm(sender, frame)
	end

	-- A datagram whose number could not be read.
	function numbers.unread(key)
		if senders[key] then
			senders[key].unread = senders[key].unread + 1
		end
	end

	-- What there is to say at a frame: "again"; "gap", how many are missing for certain and, if it is another, before which frame; or "leap" and how many have not come.
	-- Before the whole file was seen a leap is only that, and a gap is told where it has become certain.
	function numbers.at(frame, visited)
		if again[frame] then
			return "again"
		end
		if not visited and certain[frame] then
			return "gap", certain[frame].missing, certain[frame].frame
		end
		local certainly, perhaps = 0, 0
		for _, leap in ipairs(places[frame] or {}) do
			local missing, proven = judge(leap)
			perhaps = perhaps + missing
			certainly = certainly + (proven and missing or 0)
		end
		if visited and certainly > 0 then
			return "gap", certainly
		elseif perhaps > 0 then
			return "leap", perhaps
		end
	end

	reset()
	return numbers
end
