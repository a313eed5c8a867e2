// SPDX-License-Identifier: MIT OR Apache-2.0
#include "results.hpp"

#include <cstdarg>
#include <cstdio>

#include "options.hpp"

namespace {

__attribute__((format(printf, 1, 2))) std::string print(const char *format, ...)
{
	char line[256];
	va_list arguments;

	va_start(arguments, format);
	std::vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	return line;
}

double microseconds(std::uint64_t picoseconds)
{
	return static_cast<double>(picoseconds) / 1e6;
}

double nanoseconds(std::uint64_t picoseconds)
{
	return static_cast<double>(picoseconds) / 1e3;
}

std::string quoted(const std::string &text)
{
	std::string out = "\"";
	for (const char c : text) {
		if (c == '"' || c == '\\')
			out += '\\';
		if (static_cast<unsigned char>(c) < 0x20)
			out += print("\\u%04x", static_cast<unsigned>(c));
		else
			out += c;
	}
	return out + "\"";
}

} // namespace

double Row::megabytes_per_second() const
{
	return median ? static_cast<double>(size) * 1e6 / static_cast<double>(median) : 0;
}

std::string Results::where() const
{
	if (description.vfio)
		return "on hardware, which this program drives, by VFIO; times are the system's";
	if (!description.simulated)
		return "on hardware, through the Linux driver; times are the system's";
	return "in co-simulation: a harness with the driver's ring code stands in for the\n"
	       "kernel; times are simulated, and have no system calls in them";
}

std::string table_head()
{
	return "    size  runs        to card             from card            MB/s      MB/s\n"
	       "                median us  slowest us  median us  slowest us  to card from card\n"
	       "--------------------------------------------------------------------------------\n";
}

std::string table_line(const Row &to, const Row &from)
{
	return print("%8s %5llu %10.2f %11.2f %10.2f %11.2f %8.1f %9.1f\n", in_bytes(to.size).c_str(),
		     static_cast<unsigned long long>(to.runs), microseconds(to.median), microseconds(to.max),
		     microseconds(from.median), microseconds(from.max), to.megabytes_per_second(),
		     from.megabytes_per_second());
}

std::string latency_table(const Results &results)
{
	std::string text = "Latency of one doubleword, us\n"
			   "             runs      min   median     mean      99%      max\n"
			   "----------------------------------------------------------------\n";
	for (const auto &[direction, latency] : results.latencies)
		text += print("%-9s %7llu %8.3f %8.3f %8.3f %8.3f %8.3f\n", direction,
			      static_cast<unsigned long long>(latency.runs), microseconds(latency.min),
			      microseconds(latency.median), microseconds(latency.mean), microseconds(latency.p99),
			      microseconds(latency.max));
	return text;
}

std::string as_csv(const Results &results)
{
	std::string text = "direction,size,runs,min_ns,median_ns,max_ns,bytes_per_second,interrupts_per_mib,simulated\n";
	for (const Row &row : results.rows)
		text += print("%s,%llu,%llu,%.3f,%.3f,%.3f,%.0f,%.3f,%d\n", row.direction,
			      static_cast<unsigned long long>(row.size), static_cast<unsigned long long>(row.runs),
			      nanoseconds(row.min), nanoseconds(row.median), nanoseconds(row.max),
			      row.megabytes_per_second() * 1e6, row.interrupts_per_mib, results.description.simulated);
	return text;
}

std::string as_json(const Results &results)
{
	const tlpdma_description &card = results.description;
	std::string text = "{\n  \"card\": " + quoted(results.card);
	text += print(",\n  \"simulated\": %s", card.simulated ? "true" : "false");
	text += print(",\n  \"tags\": %u, \"mps\": %u, \"mrrs\": %u, \"vectors\": %u", card.tags, card.mps, card.mrrs,
		      card.vectors);
	text += ",\n  \"sweep\": [";
	const char *separator = "\n    ";
	for (const Row &row : results.rows) {
		text += separator;
		text += print("{\"direction\": \"%s\", \"size\": %llu, \"runs\": %llu, \"min_ns\": %.3f, \"median_ns\": %.3f, ",
			      row.direction, static_cast<unsigned long long>(row.size),
			      static_cast<unsigned long long>(row.runs), nanoseconds(row.min), nanoseconds(row.median));
		text += print("\"max_ns\": %.3f, \"bytes_per_second\": %.0f, \"interrupts_per_mib\": %.3f}",
			      nanoseconds(row.max), row.megabytes_per_second() * 1e6, row.interrupts_per_mib);
		separator = ",\n    ";
	}
	text += "\n  ],\n  \"latency\": [";
	separator = "\n    ";
	for (const auto &[direction, latency] : results.latencies) {
		text += separator;
		text += print("{\"direction\": \"%s\", \"runs\": %llu, \"min_ns\": %.3f, \"median_ns\": %.3f, ", direction,
			      static_cast<unsigned long long>(latency.runs), nanoseconds(latency.min),
			      nanoseconds(latency.median));
		text += print("\"mean_ns\": %.3f, \"p99_ns\": %.3f, \"max_ns\": %.3f}", nanoseconds(latency.mean),
			      nanoseconds(latency.p99), nanoseconds(latency.max));
		separator = ",\n    ";
	}
	return text + "\n  ]\n}\n";
}
