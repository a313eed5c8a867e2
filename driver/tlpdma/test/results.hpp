// SPDX-License-Identifier: MIT OR Apache-2.0
// The measurements, and the forms in which they are printed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../user/libtlpdma.h"

// Transfers of one size in one direction; times in picoseconds.
struct Row {
	const char *direction; // "to-card", "from-card"
	std::uint64_t size;
	std::uint64_t runs, min, median, max;
	double interrupts_per_mib;
	double megabytes_per_second() const; // 10^6 B/s, of the median
};

struct Results {
	std::string card;
	tlpdma_description description{};
	std::vector<Row> rows;
	std::vector<std::pair<const char *, tlpdma_latency>> latencies;

	// One sentence: on hardware, or in co-simulation, and what that means.
	std::string where() const;
};

// Lines of the table that a sweep prints as it goes; each fits 80 columns.
std::string table_head();
std::string table_line(const Row &to_card, const Row &from_card);
std::string latency_table(const Results &results);

std::string as_csv(const Results &results);
std::string as_json(const Results &results);
