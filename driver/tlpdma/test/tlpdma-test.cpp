// SPDX-License-Identifier: MIT OR Apache-2.0
// The test program of the tlpdma card: --help says what it does.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <unistd.h>

#include "options.hpp"
#include "results.hpp"

namespace {

constexpr std::size_t page = 4096;
constexpr std::uint64_t one_mib = 1 << 20;

struct Failure : std::runtime_error {
	using runtime_error::runtime_error;
};

using Card = std::unique_ptr<tlpdma_card, decltype(&tlpdma_close)>;

Card open_card(const Options &options)
{
	char message[1024] = "";
	std::vector<const char *> set;

	for (const std::string &one : options.set)
		set.push_back(one.c_str());
	set.push_back(nullptr);
	Card card(tlpdma_open(options.card.c_str(), set.data(), message, sizeof(message)), tlpdma_close);
	if (!card)
		throw std::invalid_argument(message);
	return card;
}

tlpdma_description describe(tlpdma_card *card)
{
	tlpdma_description description;

	if (tlpdma_describe(card, &description))
		throw Failure(tlpdma_error(card));
	return description;
}

// A buffer as any program has one: from the heap, at no special address but for the offset in its page that was asked for.
class Buffer {
public:
	Buffer(std::size_t bytes, std::size_t offset)
		: heap(new unsigned char[bytes + page])
	{
		const auto address = reinterpret_cast<std::uintptr_t>(heap.get());
		begin = heap.get() + (page + offset - address % page) % page;
	}
	unsigned char *data() const { return begin; }

private:
	std::unique_ptr<unsigned char[]> heap;
	unsigned char *begin;
};

// Bytes that differ from run to run and from place to place, 8 at a time.
void fill(unsigned char *data, std::size_t bytes, std::uint64_t seed)
{
	for (std::size_t i = 0; i < bytes; i += 8) {
		std::uint64_t word = (seed + i) * 0x9e3779b97f4a7c15;
		word ^= word >> 29;
		word *= 0xbf58476d1ce4e5b9;
		word ^= word >> 32;
		std::memcpy(data + i, &word, std::min<std::size_t>(8, bytes - i));
	}
}

void compare(const unsigned char *sent, const unsigned char *back, std::size_t bytes)
{
	if (!std::memcmp(sent, back, bytes))
		return;
	const std::size_t at = static_cast<std::size_t>(std::mismatch(sent, sent + bytes, back).first - sent);
	char text[160];
	std::snprintf(text, sizeof(text), "%zu bytes went to the card and back: byte %zu was 0x%02x and came back as 0x%02x",
		      bytes, at, sent[at], back[at]);
	throw Failure(text);
}

class Progress {
public:
	explicit Progress(bool quiet) : shown(!quiet && isatty(2)) {}
	void tell(const std::string &what) const
	{
		if (shown)
			std::fprintf(stderr, "\r%-60s", what.c_str());
	}
	void clear() const
	{
		if (shown)
			std::fprintf(stderr, "\r%60s\r", "");
	}

private:
	bool shown;
};

// The times of transfers of one size in one direction.
class Times {
public:
	Times(const char *direction, std::uint64_t size) : direction(direction), size(size) {}
	void add(std::uint64_t picoseconds) { times.push_back(picoseconds); }
	Row row(std::uint64_t interrupts)
	{
		std::sort(times.begin(), times.end());
		const double moved = static_cast<double>(size) * static_cast<double>(times.size()) / one_mib;
		return { direction, size, times.size(), times.front(), times[(times.size() - 1) / 2], times.back(),
			 static_cast<double>(interrupts) / moved };
	}

private:
	const char *direction;
	std::uint64_t size;
	std::vector<std::uint64_t> times;
};

std::size_t runs_of(const Options &options, bool simulated, std::uint64_t size)
{
	const std::size_t some = simulated ? (size > one_mib ? 1 : 3) : 100;

	return options.runs.value_or(some);
}

struct Bench {
	const Options &options;
	tlpdma_card *card;
	Results &results;
	Progress progress;

	std::uint64_t timed(int failed, std::uint64_t begin)
	{
		if (failed)
			throw Failure(tlpdma_error(card));
		return tlpdma_clock(card) - begin;
	}

	void measure_size(const Buffer &sent, const Buffer &back, std::uint64_t size)
	{
		const std::size_t bytes = static_cast<std::size_t>(size);
		const std::size_t runs = runs_of(options, results.description.simulated, size);
		const tlpdma_description before = describe(card);
		Times to("to-card", size), from("from-card", size);

		for (std::size_t run = 0; run < runs; run++) {
			progress.tell(in_bytes(size) + ", run " + std::to_string(run + 1) + " of " + std::to_string(runs));
			fill(sent.data(), bytes, (size << 20) + run);
			std::memset(back.data(), 0x5a, bytes);
			std::uint64_t begin = tlpdma_clock(card);
			to.add(timed(tlpdma_to_card(card, options.address, sent.data(), bytes), begin));
			begin = tlpdma_clock(card);
			from.add(timed(tlpdma_from_card(card, options.address, back.data(), bytes), begin));
			compare(sent.data(), back.data(), bytes);
		}
		const tlpdma_description after = describe(card);
		results.rows.push_back(to.row(after.interrupts[0] - before.interrupts[0]));
		results.rows.push_back(from.row(after.interrupts[1] - before.interrupts[1]));
	}

	void sweep(std::uint64_t largest)
	{
		const Buffer sent(static_cast<std::size_t>(largest), options.offset);
		const Buffer back(static_cast<std::size_t>(largest), options.offset);

		for (const Buffer *buffer : { &sent, &back })
			if (options.registered && tlpdma_register(card, buffer->data(), static_cast<std::size_t>(largest)))
				throw Failure(tlpdma_error(card));
		if (!options.quiet)
			std::fputs(table_head().c_str(), stdout);
		for (std::uint64_t size = options.from; size <= largest; size *= 2) {
			measure_size(sent, back, size);
			progress.clear();
			const std::size_t last = results.rows.size() - 1;
			if (!options.quiet)
				std::fputs(table_line(results.rows[last - 1], results.rows[last]).c_str(), stdout);
			std::fflush(stdout);
			if (size > largest / 2)
				break;
		}
		for (const Buffer *buffer : { &sent, &back })
			if (options.registered)
				tlpdma_unregister(card, buffer->data());
	}

	void latency()
	{
		const std::size_t runs = options.latency_runs.value_or(results.description.simulated ? 100 : 100'000);

		for (const bool to_card : { true, false }) {
			tlpdma_latency latency;
			progress.tell(std::string("latency ") + (to_card ? "to card" : "from card"));
			if (tlpdma_measure_latency(card, to_card, options.address, runs, &latency))
				throw Failure(tlpdma_error(card));
			results.latencies.emplace_back(to_card ? "to-card" : "from-card", latency);
		}
		tlpdma_latency load;
		if (!tlpdma_measure_load(card, options.address, runs, &load))
			results.latencies.emplace_back("load", load);
		else if (errno != ENODEV)
			throw Failure(tlpdma_error(card));
		progress.clear();
		if (!options.quiet)
			std::printf("%s%s", options.sweep ? "\n" : "", latency_table(results).c_str());
	}
};

// A file that is whole or not there.
void write_file(const std::string &path, const std::string &text)
{
	if (path == "-") {
		std::fputs(text.c_str(), stdout);
		return;
	}
	const std::string part = path + ".part";
	std::FILE *file = std::fopen(part.c_str(), "w");
	const bool written = file && std::fputs(text.c_str(), file) >= 0;
	if ((file && std::fclose(file)) || !written || std::rename(part.c_str(), path.c_str())) {
		const std::string why = std::strerror(errno);
		std::remove(part.c_str());
		throw Failure(path + ": " + why);
	}
}

// The largest size that the card has room for, of those that were asked for.
std::uint64_t largest_size(const Options &options, const tlpdma_description &card)
{
	const std::uint64_t room = options.address < card.memory ? card.memory - options.address : 0;

	if (options.from > room)
		throw std::invalid_argument("the card has " + in_bytes(card.memory) + " in all; there is no room for " +
					    in_bytes(options.from) + " from address " + std::to_string(options.address) +
					    " on");
	if (options.to > room && !options.quiet)
		std::printf("The card has %s: larger transfers are left out.\n", in_bytes(room).c_str());
	return std::min(options.to, room);
}

void measure(const Options &options)
{
	const Card card = open_card(options);
	Results results{ options.card, describe(card.get()), {}, {} };
	const tlpdma_description &about = results.description;

	if (!options.quiet)
		std::printf("%s\n%s.\n%u tags, payload %u B, read request %u B, %s, buffer from new[] + %zu\n\n",
			    options.card.c_str(), results.where().c_str(), about.tags, about.mps, about.mrrs,
			    about.vectors ? "MSI-X" : "legacy interrupt", options.offset);
	Bench bench{ options, card.get(), results, Progress(options.quiet) };
	if (options.sweep)
		bench.sweep(largest_size(options, about));
	if (options.latency)
		bench.latency();
	const tlpdma_description after = describe(card.get());
	const std::uint64_t missed = after.missed[0] + after.missed[1] - about.missed[0] - about.missed[1];
	if (missed > 0)
		std::fprintf(stderr, "tlpdma-test: %llu transfers were done, but their interrupts did not come\n",
			     static_cast<unsigned long long>(missed));
	if (!options.quiet)
		std::puts("\nEvery byte came back as it was sent.");
	if (!options.csv.empty())
		write_file(options.csv, as_csv(results));
	if (!options.json.empty())
		write_file(options.json, as_json(results));
}

} // namespace

int main(int count, char **arguments)
try {
	const std::optional<Options> options = read_options(count, arguments);

	if (options)
		measure(*options);
	else
		std::fputs(help_text, stdout);
	return 0;
} catch (const std::invalid_argument &error) {
	std::fprintf(stderr, "tlpdma-test: %s\n", error.what());
	return 2;
} catch (const Failure &failure) {
	std::fprintf(stderr, "\ntlpdma-test: %s\n", failure.what());
	return 1;
} catch (const std::bad_alloc &) {
	std::fprintf(stderr, "tlpdma-test: there is not enough memory; smaller --sizes need less\n");
	return 1;
}
