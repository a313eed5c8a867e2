// SPDX-License-Identifier: MIT OR Apache-2.0
#include "options.hpp"

#include <cctype>
#include <limits>
#include <stdexcept>
#include <utility>

const char *const help_text = R"(usage: tlpdma-test [OPTIONS] CARD

Measures a tlpdma card: transfers of 4 B to 256 MiB to and from a buffer on the
heap, every byte looked at, and the latency of transfers of one doubleword.

CARD is /dev/tlpdmaN, the character device of the Linux driver;
vfio:0000:01:00.0, a function that this program drives itself, by VFIO; or
sim:EXPERIMENT.toml[#DEVICE], a simulated machine with the card in it (DEVICE is
"card" unless told); then a harness stands in for the kernel, and times are
simulated.

  --sizes FROM:TO      sizes, doubling (4:256MiB; up to what the card has)
  --runs N             of each size (100; in co-simulation 3, above 1 MiB 1)
  --latency-runs N     runs for the latency (100000; in co-simulation 100)
  --only sweep|latency just one of the two
  --offset N           of the buffer from the beginning of a page (0)
  --address N          of the card, where the data go (0)
  --register           map the buffers for the card once (VFIO), not each time
  --set KEY=VALUE      override a key of the experiment; may be repeated
  --csv FILE           write the rows as CSV; - is standard output
  --json FILE          write everything as JSON; - is standard output
  --quiet              no progress and no table
  --help               this

Sizes are numbers with B, KiB, MiB or GiB, or without a unit.

Examples:
  tlpdma-test /dev/tlpdma0
  tlpdma-test --sizes 4:1MiB --offset 3 --csv sweep.csv /dev/tlpdma0
  tlpdma-test --only latency sim:studies/speedy/card.toml
  tlpdma-test --set 'device.card.link="gen1 x4"' sim:card.toml#card

It exits with 0 if all data were right, 1 if not or if the card failed, 2 if
it was asked for something that cannot be.
)";

namespace {

[[noreturn]] void refuse(const std::string &why)
{
	throw std::invalid_argument(why);
}

std::uint64_t scale(const std::string &unit, const std::string &option, const std::string &text)
{
	const std::pair<const char *, int> units[] = {
		{ "", 0 }, { "B", 0 }, { "KiB", 10 }, { "MiB", 20 }, { "GiB", 30 },
	};
	for (const auto &[name, shift] : units)
		if (unit == name)
			return std::uint64_t{ 1 } << shift;
	refuse(option + ": \"" + text + "\" is not a size; expected a number with B, KiB, MiB or GiB, such as 64KiB");
}

std::uint64_t read_size(const std::string &option, const std::string &text)
{
	std::uint64_t value = 0;
	std::size_t digits = 0;
	const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

	for (; digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])); digits++) {
		const std::uint64_t digit = static_cast<std::uint64_t>(text[digits] - '0');
		if (value > (most - digit) / 10)
			refuse(option + ": " + text + " is too large");
		value = value * 10 + digit;
	}
	if (digits == 0)
		refuse(option + ": \"" + text + "\" is not a number");
	const std::uint64_t factor = scale(text.substr(digits), option, text);
	if (value > most / factor)
		refuse(option + ": " + text + " is too large");
	return value * factor;
}

std::size_t read_count(const std::string &option, const std::string &text)
{
	const std::uint64_t count = read_size(option, text);
	if (count == 0 || count > 100'000'000)
		refuse(option + ": " + text + " runs are not possible; expected 1 to 100000000");
	return static_cast<std::size_t>(count);
}

void read_sizes(Options &options, const std::string &text)
{
	const std::size_t colon = text.find(':');
	options.from = read_size("--sizes", text.substr(0, colon));
	options.to = colon == std::string::npos ? options.from : read_size("--sizes", text.substr(colon + 1));
	if (options.from == 0 || options.from > options.to)
		refuse("--sizes: " + text + " has no sizes; expected FROM:TO, such as 4:1MiB");
}

void read_only(Options &options, const std::string &text)
{
	if (text != "sweep" && text != "latency")
		refuse("--only: \"" + text + "\" is not a mode; expected sweep or latency");
	options.sweep = text == "sweep";
	options.latency = text == "latency";
}

void take(Options &options, const std::string &option, const std::string &value)
{
	if (option == "--sizes")
		read_sizes(options, value);
	else if (option == "--runs")
		options.runs = read_count(option, value);
	else if (option == "--latency-runs")
		options.latency_runs = read_count(option, value);
	else if (option == "--only")
		read_only(options, value);
	else if (option == "--offset")
		options.offset = static_cast<std::size_t>(read_size(option, value));
	else if (option == "--address")
		options.address = read_size(option, value);
	else if (option == "--set")
		options.set.push_back(value);
	else if (option == "--csv")
		options.csv = value;
	else if (option == "--json")
		options.json = value;
	else
		refuse(option + " is not an option; --help lists the options");
}

} // namespace

std::optional<Options> read_options(int count, char **arguments)
{
	Options options;

	for (int i = 1; i < count; i++) {
		std::string option = arguments[i];
		if (option == "--help" || option == "-h")
			return std::nullopt;
		if (option == "--quiet") {
			options.quiet = true;
		} else if (option == "--register") {
			options.registered = true;
		} else if (option.rfind("--", 0) == 0) {
			const std::size_t equals = option.find('=');
			std::string value;
			if (equals != std::string::npos) {
				value = option.substr(equals + 1);
				option.resize(equals);
			} else if (++i < count) {
				value = arguments[i];
			} else {
				refuse(option + " needs a value");
			}
			take(options, option, value);
		} else if (options.card.empty()) {
			options.card = option;
		} else {
			refuse("one card at a time: " + options.card + " or " + option);
		}
	}
	if (options.card.empty())
		refuse("no card is named; expected /dev/tlpdma0, vfio:ADDRESS or sim:EXPERIMENT.toml (see --help)");
	if (options.offset >= 4096)
		refuse("--offset: " + std::to_string(options.offset) + " is not within a page of 4096 bytes");
	return options;
}

std::string in_bytes(std::uint64_t bytes)
{
	const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	std::size_t unit = 0;

	for (; unit < 3 && bytes >= 1024 && bytes % 1024 == 0; unit++)
		bytes /= 1024;
	return std::to_string(bytes) + " " + units[unit];
}
