// SPDX-License-Identifier: MIT OR Apache-2.0
// The command line of tlpdma-test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

struct Options {
	std::string card;
	std::vector<std::string> set;
	std::uint64_t from = 4, to = 256 << 20; // bytes
	std::optional<std::size_t> runs;	// of a point; else as many as the kind of card has time for
	std::optional<std::size_t> latency_runs;
	std::size_t offset = 0;	   // of the buffer from the beginning of a page
	std::uint64_t address = 0; // of the card
	std::string csv, json;	   // files; "-" is standard output, "" none
	bool sweep = true, latency = true;
	bool registered = false; // the buffers, for all transfers at once
	bool quiet = false;
};

// The options, or nothing if the text of --help was wanted. Throws std::invalid_argument, in words for people.
std::optional<Options> read_options(int count, char **arguments);

extern const char *const help_text;

// "64KiB" of 65536: a number of bytes in its largest unit.
std::string in_bytes(std::uint64_t bytes);
