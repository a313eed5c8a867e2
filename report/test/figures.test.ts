/** What is shown is what the result says: conservation, filters and the ladder's order, without a browser. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CASES } from "./cases";
import { axisStep, comparable } from "../src/compare_layout";
import { attributionOf, axisOf, barsOf, busUse, flowBytes, flowRate, latencyOf, utilization } from "../src/derive";
import { clampRange, flowLinks, linkOfPlace, matches, NO_FILTER, path, type Filter } from "../src/filter";
import { bytes, count, digits, instant, percent, rate, time } from "../src/format";
import { abridge, along, answersAtOnce, isCompletion, isRequest, layOut, partner, type Shown } from "../src/ladder_layout";
import { changedBetween, changesOf, dumpLines, spaceAt, startOf } from "../src/registers";
import { decode, registerAt } from "../src/registers_decode";
import { CAUSES, readResult, type Bar, type Packet, type Sample } from "../src/result";
import { entriesOf, nextOf, readQuery, search, transactionEntry } from "../src/search";
import { AER } from "./spaces";
import { ladderAt, listed, mostly, nearest, told } from "../src/transactions";

const quick = CASES["quickstart"]!();
const reads = CASES["reads"]!();
const close = (a: number, b: number, part = 1e-9) => assert.ok(Math.abs(a - b) <= part * Math.max(1, Math.abs(a), Math.abs(b)), `${a} is not ${b}`);

test("numbers read as people write them", () => {
  assert.equal(time(176e6), "176\u202fns");
  assert.equal(time(0), "0\u202fns");
  assert.equal(time(3_046_875, 7), "3.046875\u202fns");
  assert.equal(rate(28.73e9), "28.73\u202fGb/s");
  assert.equal(bytes(4096), "4\u202fKiB");
  assert.equal(count(1234567), "1\u202f234\u202f567");
  assert.equal(percent(0), "0\u202f%");
  assert.equal(percent(0.000001), "<0.01\u202f%");
  assert.equal(percent(0.997), "99.7\u202f%");
  assert.equal(digits(0.000123), "0.000123");
  assert.equal(instant(60_031_000_000, 1e6), "60.03100\u202fµs");
});

test("bars are the histogram's steps, merged where they are many, and conserve transactions and the time of each cause", () => {
  const step = (i: number): Bar => {
    const [from, to] = [i, i + 1].map((k) => ((32 + (k % 32)) * 2 ** Math.floor(k / 32)) / 1e6);
    return { from_ns: from!, to_ns: to!, count: 1 + (i % 7), causes_ns: [from! / 2, from! / 3, 0] };
  };
  const few = [600, 601, 605].map(step);
  assert.deepEqual(barsOf(few), few, "as they are");
  const many = Array.from({ length: 166 }, (_, i) => step(601 + i));
  const bars = barsOf(many);
  assert.ok(bars.length > 30 && bars.length <= 60, `${bars.length} bars`);
  bars.forEach((b, i) => i > 0 && close(b.from_ns, bars[i - 1]!.to_ns));
  const total = (list: Bar[], of: (b: Bar) => number) => list.reduce((s, b) => s + b.count * of(b), 0);
  close(total(bars, () => 1), total(many, () => 1));
  for (const k of [0, 1, 2]) close(total(bars, (b) => b.causes_ns[k]!), total(many, (b) => b.causes_ns[k]!));
  assert.deepEqual(barsOf([]), []);
});

test("the axis of latency spans smallest to largest", () => {
  const stats = quick.flows[0]!.latency_ns!;
  const { lo, hi } = axisOf(barsOf(quick.flows[0]!.histogram), stats);
  assert.deepEqual([lo, hi], [stats.min, stats.max]);
  const one = axisOf([{ from_ns: 172, to_ns: 176.2, count: 3, causes_ns: [176] }], { ...stats, min: 176, max: 176 });
  assert.ok(one.lo < 172 && one.hi > 176.2, "room around a single step");
});

test("a packet's short text keeps its size and address", () => {
  const brief = (text: string) => abridge({ ...quick.ladder!.packets[0]!, class: "tlp", kind: text.split(",")[0]!, text }).brief;
  assert.equal(brief("MWr, len 64, requester 04:00.0, tag 0x00, last 0xf, first 0xf, addr 0x10406cb00"), "MWr 256 B @ 0x10406cb00");
  assert.equal(brief("MRd, len 1, requester 00:00.0, tag 0x1f, last 0x0, first 0x6, addr 0x10000003fc0"), "MRd 2 B @ 0x10000003fc0");
  assert.equal(brief("MRd, len 3, requester 00:00.0, tag 0x1f, last 0x1, first 0x8, addr 0x1000"), "MRd 6 B @ 0x1000");
  assert.equal(brief("CplD, len 17, completer 00:00.0, SC, byte count 200, requester 01:00.0, tag 0x00, lowaddr 0x3d"), "CplD 67 B tag 0x00");
});

test("a time range divides bytes without loss", () => {
  const cut = 77_777_777_777;
  const parts = flowBytes(quick, 0, [0, cut]) + flowBytes(quick, 0, [cut, quick.end_fs]);
  close(parts, quick.series.flows[0]!.bytes.reduce((a, b) => a + b, 0));
  close(flowRate(quick, 0, [0, cut]), (flowBytes(quick, 0, [0, cut]) * 8e15) / cut);
});

test("utilisation of a range sums to 1 and the whole range gives the mean of its bins", () => {
  const u = utilization(quick, 0, 0, [20e9, 90e9]);
  close(u.payload + u.overhead + u.dllp + u.ordered_sets + u.replay + u.idle, 1);
  const series = quick.series.directions[0]!;
  close(utilization(quick, 0, 0, [0, quick.end_fs]).payload, series.payload.reduce((a, b) => a + b, 0) / quick.series.bins);
});

test("filters keep what touches the range and crosses the link", () => {
  const s = { flow: 0, start_fs: 10e9, latency_ns: 1000, links: [0, 2], causes_ns: [] };
  const pass = (f: Partial<Filter>) => matches(s, { link: null, range: null, ...f });
  assert.ok(pass({}) && pass({ link: 2 }) && pass({ range: [10.9e9, 20e9] }) && pass({ range: [0, 10.1e9] }));
  assert.ok(!pass({ link: 1 }) && !pass({ range: [11e9, 20e9] }) && !pass({ range: [0, 10e9] }));
  assert.equal(clampRange(quick, 5, 5), null);
  assert.equal(clampRange(quick, -1, 1e15), null, "the whole run is no filter");
  assert.deepEqual(clampRange(quick, 9e9, 3e9), [3e9, 9e9]);
});

test("places name links, and a flow's way follows the tree", () => {
  const link = (n: string) => reads.links.findIndex((l) => l.name === n);
  assert.equal(linkOfPlace(reads, "sw0 → host.rp0"), link("sw0"));
  assert.equal(linkOfPlace(reads, "host"), null);
  assert.deepEqual(path(reads, "ssd", "host").map((i) => reads.links[i]!.name).sort(), ["ssd", "sw0"]);
  assert.deepEqual(path(reads, "ssd", "nic").map((i) => reads.links[i]!.name).sort(), ["nic", "ssd"], "peer to peer stays below the switch");
  assert.deepEqual([...flowLinks(CASES["empty"]!())[0]!], [0], "without samples, from the tree");
});

test("a filtered latency rests on its samples, the whole run's is exact", () => {
  assert.equal(latencyOf(quick, 0, { link: null, range: null }).samples, null);
  const range: Filter = { link: null, range: [20e9, 60e9] };
  const view = latencyOf(quick, 0, range);
  const fitting = quick.samples.filter((s) => s.flow === 0 && matches(s, range));
  assert.equal(view.samples, fitting.length);
  close(view.bars.reduce((s, b) => s + b.count, 0), fitting.length);
  assert.equal(view.stats!.max, Math.max(...fitting.map((s) => s.latency_ns)));
  assert.equal(latencyOf(quick, 0, { link: 2, range: null }).stats, null, "the SSD does not cross the NIC's link");
});

test("attribution: by place for the run, by cause where samples tell no place, and only the link's own when one is chosen", () => {
  const f = quick.flows[0]!;
  assert.equal(attributionOf(quick, f, 0, { link: null, range: null }).length, f.attribution.length);
  const place = `${quick.links[0]!.directions[0].from} → ${quick.links[0]!.directions[0].to}`;
  for (const range of [null, [20e9, 60e9] as const]) {
    const rows = attributionOf(quick, f, 0, { link: 0, range });
    assert.ok(rows.length > 0 && rows.every((r) => r.place === place), "only what is charged to the link");
  }
  const one = CASES["one"]!();
  const ranged = attributionOf(one, one.flows[0]!, 0, { link: null, range: [20e9, 60e9] });
  assert.ok(ranged.length > 0 && ranged.every((r) => r.place === null));
  for (const [r, flow] of [[quick, f], [one, one.flows[0]!]] as const) {
    close(attributionOf(r, flow, 0, { link: null, range: [20e9, 60e9] }).reduce((s, x) => s + x.share, 0), 1, 1e-6);
  }
});

const ALL: Shown = { link: null, range: null, dllps: true, transaction: null };

test("the ladder keeps the order of events and gives each packet a line", () => {
  const { rungs, columns, height } = layOut(reads, reads.ladder!, ALL);
  assert.equal(rungs.length, reads.ladder!.packets.length);
  assert.ok(columns.includes("host") && columns.includes("ssd"));
  rungs.forEach((r, i) => {
    const next = rungs[i + 1];
    if (next) assert.ok(next.packet.start_fs >= r.packet.start_fs && next.top >= r.top + 26);
    assert.ok(r.y[0] <= r.y[1] && r.y[2] <= r.y[3] && r.y[0] <= r.y[2] && r.y[1] <= r.y[3], "time runs downwards");
    assert.ok(r.y[3] <= height && r.from !== r.to, `packet ${r.packet.id} goes from ${r.from} to ${r.to}`);
  });
});

test("filters reach the ladder", () => {
  const link = layOut(reads, reads.ladder!, { ...ALL, link: 0 });
  assert.ok(link.rungs.length > 0 && link.rungs.every((r) => r.packet.link === 0));
  assert.deepEqual(link.columns, ["sw0", "host"]);
  assert.ok(layOut(reads, reads.ladder!, { ...ALL, dllps: false }).rungs.every((r) => r.packet.class === "tlp"));
  assert.equal(layOut(reads, reads.ladder!, { ...ALL, range: [0, 1e9] }).rungs.length, 0);
});

test("from a request to its completion and back", () => {
  const { rungs } = layOut(reads, reads.ladder!, ALL);
  const request = rungs.findIndex((r) => r.packet.kind === "MRd");
  const completion = partner(rungs, request, "completion")!;
  assert.ok(isCompletion(rungs[completion]!.packet) && completion > request);
  assert.equal(rungs[completion]!.packet.tag, rungs[request]!.packet.tag);
  const back = partner(rungs, completion, "request")!;
  assert.ok(isRequest(rungs[back]!.packet) && rungs[back]!.packet.transaction === rungs[request]!.packet.transaction);
  assert.equal(along(rungs, along(rungs, request, 1)!, -1), request);
  const dllp = rungs.findIndex((r) => r.packet.class === "dllp");
  assert.equal(partner(rungs, dllp, "completion"), null);
  const write = rungs.findIndex((r) => r.packet.kind === "MWr");
  assert.equal(partner(rungs, write, "completion"), null, "posted");
});

/** The packets of a ladder that a search finds. */
const find = (text: string, packets: Packet[] = reads.ladder!.packets): Packet[] => {
  const found = search(entriesOf(reads, { ...reads.ladder!, packets }), readQuery(text));
  return packets.filter((p) => found.has(p.id));
};

test("a search finds what has the kind, the tag, the address, the function and the flow, and nothing else", () => {
  const all = reads.ladder!.packets;
  const ids = (packets: Packet[]) => packets.map((p) => p.id);
  const where = (fits: (p: Packet) => boolean) => ids(all.filter(fits));
  assert.deepEqual(ids(find("mrd")), where((p) => p.kind === "MRd"));
  assert.deepEqual(ids(find("cpl")), where((p) => p.kind === "CplD"), "the beginning of a kind");
  assert.deepEqual(ids(find("tag 0x1e")), where((p) => p.tag === 30));
  for (const same of ["tag 30", "tag:30", "TAG=0x1e"]) assert.deepEqual(ids(find(same)), where((p) => p.tag === 30), same);
  assert.deepEqual(ids(find("01:00.0")), where((p) => p.header?.requester === "01:00.0"), "requests and their completions");
  assert.deepEqual(ids(find("01:")), ids(find("01:00.0")), "the beginning of a function");
  assert.deepEqual(ids(find("0000:01:00.0")), ids(find("01:00.0")), "with its domain");
  assert.deepEqual(ids(find("00:00.0")), where((p) => p.header?.completer === "00:00.0"));
  assert.deepEqual(ids(find("gpu")), where((p) => p.flow === 2));
  assert.deepEqual(ids(find("MRd ssd tag 0")), where((p) => p.kind === "MRd" && p.flow === 0 && p.tag === 0), "all of the words");
  assert.deepEqual(ids(find("sc")), where((p) => p.header?.status === "SC"));
  assert.deepEqual(ids(find("corrupted")), where((p) => p.bad));
  for (const what of ["mrd", "tag 0x1e", "01:00.0", "gpu", "sc", "corrupted"]) assert.ok(find(what).length > 0, what);
  for (const none of ["tag 0x99", "1f:00.0", "0xdead", "IOWr", "no such flow"]) assert.deepEqual(find(none), [], none);
});

test("an address finds the requests whose doublewords have it, a range those that touch it", () => {
  const at = (address: string, length: number, id: number): Packet => ({ ...reads.ladder!.packets.find((p) => p.kind === "MRd")!, id, header: { requester: "01:00.0", address, length } });
  const packets = [at("0x1000", 1, 0), at("0x1004", 64, 1), at("0xfffffffffffff000", 1024, 2)];
  const ids = (text: string) => find(text, packets).map((p) => p.id);
  assert.deepEqual(ids("0x1000"), [0]);
  assert.deepEqual(ids("0x1003"), [0], "its last byte");
  assert.deepEqual(ids("0x1004"), [1]);
  assert.deepEqual(ids("0x1103"), [1]);
  assert.deepEqual(ids("0x1104"), []);
  assert.deepEqual(ids("0x100"), [], "digits are an address, not the beginning of one");
  assert.deepEqual(ids("0xfff-0x1000"), [0]);
  assert.deepEqual(ids("0x0-0xffff"), [0, 1]);
  assert.deepEqual(ids("0xffffffffffffffff"), [2], "no bit of 64 is lost");
  const old = packets.map((p): Packet => ({ ...p, header: null, text: "MRd, len 1, requester 01:00.0, tag 0x00, last 0x0, first 0xf, addr 0x2000" }));
  assert.equal(find("0x2003", old).length, 3, "a document without headers tells it in its text");
  assert.equal(find("01:00", old).length, 3);
});

test("what cannot be searched for says why, and finds nothing", () => {
  for (const [text, why] of [["tag", /is a number/], ["tag 0xz", /no number of a tag/], ["0x", /hexadecimal/], ["0x2000-0x1000", /is before/]] as const) {
    assert.match(readQuery(text)!.problem!, why);
    assert.deepEqual(find(text), []);
  }
  assert.equal(readQuery("  "), null);
  assert.deepEqual([nextOf([3, 7, 9], 3, 1), nextOf([3, 7, 9], 9, 1), nextOf([3, 7, 9], 3, -1), nextOf([3, 7, 9], 8, -1), nextOf([], 3, 1)], [7, 3, 9, 7, null], "round about");
});

test("transactions: a sample and the ladder together, what is in both once, what does not end well with its ending", () => {
  const ladder = reads.ladder!;
  const of = (t: (typeof ladder.transactions)[number]): Sample => ({ flow: t.flow, start_fs: t.start_fs, latency_ns: (t.end_fs - t.start_fs) / 1e6, links: [0], causes_ns: CAUSES.map(() => 0) });
  const [first, second, third] = ladder.transactions;
  const other = { ...of(third!), start_fs: 5, latency_ns: 123 };
  const transactions = ladder.transactions.map((t) => (t === second ? { ...t, ending: "timeout" as const } : t));
  const result = { ...reads, samples: [of(first!), of(third!), other], ladder: { ...ladder, transactions } };
  const rows = listed(result);
  assert.equal(rows.length, ladder.transactions.length + 1);
  assert.equal(rows[0]!.latency_ns, 123);
  assert.deepEqual([rows[0]!.transaction, rows[0]!.address, rows[0]!.kind], [null, null, reads.flows[third!.flow]!.op], "a sample of an older document has no address");
  const row = rows.find((r) => r.transaction === first!.id)!;
  assert.deepEqual([row.kind, row.bytes, row.address, row.ending], ["MRd", 4096, "0x10000000", "done"]);
  assert.equal(row.packets, ladder.packets.filter((p) => p.transaction === first!.id).length);
  assert.ok(row.packets > 1 && row.links.includes(0));
  close(row.causes_ns.reduce((a, b) => a + b, 0), row.latency_ns);
  assert.equal(row.causes_ns[CAUSES.indexOf("completer")], 200);
  assert.deepEqual(mostly({ ...row, causes_ns: [1, 0, 3] }), { cause: 2, share: 0.75 });
  assert.equal(mostly({ ...row, causes_ns: [0, 0] }), null);
  assert.equal(rows.find((r) => r.transaction === second!.id)!.ending, "timeout");
  assert.equal(ladderAt({ ...row, start_fs: 54_720_999_999 }), "ladder.at=54720ns", "no later than it starts");
  const two = listed({ ...result, samples: [of(first!), of(first!)] });
  assert.equal(two.length, ladder.transactions.length + 1, "two that are alike are two");
});

test("the list says how much of the run it has", () => {
  const known = told(reads);
  assert.equal(known.sampled, reads.samples.length);
  assert.equal(known.ended, reads.flows.reduce((n, f) => n + f.transactions, 0));
  assert.equal(known.failed, 9);
  const kept = reads.ladder!.transactions.slice(1);
  const open = told({ ...reads, ladder: { ...reads.ladder!, transactions: kept } });
  assert.deepEqual([open.open, open.laddered], [1, known.laddered - 1]);
});

test("the nearest transaction is of the flow, ended well, and of two as near the one with packets", () => {
  const rows = listed(reads);
  const all = rows.map((_, i) => i);
  const value = rows.find((r) => r.flow === 1)!.latency_ns;
  const found = rows[nearest(rows, all, 1, value)!]!;
  assert.deepEqual([found.flow, found.latency_ns], [1, value]);
  const far = nearest(rows, all, 1, 1e9)!;
  assert.equal(rows[far]!.latency_ns, Math.max(...rows.filter((r) => r.flow === 1).map((r) => r.latency_ns)));
  const pair = [{ ...found, transaction: null }, { ...found, transaction: 7 }, { ...found, latency_ns: value, ending: "ur" as const }];
  assert.equal(nearest(pair, [0, 1, 2], 1, value), 1);
  assert.equal(nearest(pair, [0, 2], 1, value), 0);
  assert.equal(nearest(pair, [2], 1, value), null);
  assert.equal(nearest(rows, all, 99, value), null);
});

test("a sampled transaction has address, function and tag, by which it is found", () => {
  const sample: Sample = { flow: 0, transaction: 77, access: "read", address: "0x12340", bytes: 512, requester: "03:00.0", tag: 31, start_fs: 5, latency_ns: 123, links: [0], causes_ns: CAUSES.map(() => 0) };
  const write: Sample = { ...sample, access: "write", start_fs: 6, tag: null, address: "0x12540" };
  const result = { ...reads, samples: [sample, write], ladder: null };
  const rows = listed(result);
  assert.deepEqual([rows[0]!.address, rows[0]!.bytes, rows[0]!.requester, rows[0]!.tag, rows[0]!.kind], ["0x12340", 512, "03:00.0", 31, "read"]);
  const found = (text: string) => rows.flatMap((r, i) => (readQuery(text)!.fits(transactionEntry(result, r)) ? [i] : []));
  assert.deepEqual(["0x12340", "0x1253f", "0x12540", "0x1233f", "0x12000-0x13000", "tag 0x1f", "tag 30", "03:", "write", "done", "ur"].map(found), [[0], [0], [1], [], [0, 1], [0], [], [0, 1], [1], [0, 1], []]);
  const both = listed({ ...reads, samples: [] });
  const inLadder = both.find((r) => r.kind === "MRd")!;
  const completion = reads.ladder!.packets.filter((p) => p.transaction === inLadder.transaction && p.role === "completion").at(-1)!;
  assert.equal(inLadder.tag, completion.tag, "of the completion that brought the last byte");
});

const spaces = quick.config_spaces!;

test("a configuration space at a moment has the changes up to it, and what changed between two moments is marked whichever comes first", () => {
  const at = (part: number) => quick.end_fs * part;
  const word = (part: number, offset: number) => new DataView(spaceAt(spaces, 1, at(part)).bytes.buffer).getUint32(offset, true);
  assert.deepEqual([0, 0.2499, 0.25, 0.4999, 0.5, 1].map((part) => word(part, AER + 4)), [0, 0, 0x100000, 0x100000, 0, 0]);
  assert.deepEqual(startOf(spaces, 1), spaceAt(spaces, 1, 0).bytes);
  // By hand: the last value of each doubleword that changed.
  const end = startOf(spaces, 1);
  for (const c of changesOf(spaces, 1)) new DataView(end.buffer).setUint32(c.offset, c.new, true);
  assert.deepEqual(spaceAt(spaces, 1, quick.end_fs).bytes, end);
  const marked = (a: number, b: number) => [...changedBetween(spaces, 1, at(a), at(b))].sort((x, y) => x - y);
  assert.deepEqual(marked(0, 0.3), [0x5a, AER + 6]);
  assert.deepEqual(marked(0.3, 0), [0x5a, AER + 6]);
  assert.deepEqual(marked(0.25, 0.3), [], "after it, and up to and with the later");
  assert.deepEqual(marked(0, 0.5), [0x5a, AER + 6], "what changed back is marked, too");
  assert.deepEqual(marked(0.6, 1), [0x04]);
  assert.deepEqual([0.2, 0.3, 0.69, 0.7].map((part) => spaceAt(spaces, 2, at(part)).inGap), [false, true, true, false]);
});

test("registers are decoded as lspci does", () => {
  const decoded = (f: number, part: number) => decode(spaceAt(spaces, f, quick.end_fs * part).bytes);
  const value = (f: number, part: number, block: RegExp, name: string) => decoded(f, part).find((b) => block.test(b.name))!.registers.find((r) => r.name === name)!.value;
  assert.equal(value(1, 0, /Header/, "Command"), "I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+");
  assert.match(value(1, 1, /Header/, "Command"), /Mem\+ BusMaster- /);
  assert.equal(value(1, 0, /Header/, "BAR 0"), "Memory at 00000001e0000000 (64-bit, prefetchable)");
  assert.equal(value(1, 0, /MSI-X/, "Control"), "Enable+ Count=8 Masked-");
  assert.match(value(1, 0.3, /Express/, "DevSta"), /^CorrErr\+ NonFatalErr- FatalErr- UnsupReq\+/);
  assert.match(value(1, 0.3, /Advanced/, "UESta"), /ECRC- UnsupReq\+ ACSViol-/);
  assert.match(value(1, 0, /Express/, "DevCtl"), /MaxPayload 128 B MaxReadReq 512 B$/);
  assert.equal(value(1, 0, /Express/, "LnkSta"), "16 GT/s x4");
  assert.equal(value(0, 0, /Header/, "Bus"), "primary=00 secondary=01 subordinate=04");
  assert.equal(value(0, 0, /Header/, "Memory behind bridge"), "e0000000-e01fffff");
  assert.equal(value(0, 0, /Header/, "I/O behind bridge"), "[disabled]");
  assert.match(value(0, 0, /Express/, "Capabilities"), /Root Port \(Slot\+\)/);
  assert.match(value(0, 0, /Advanced/, "RootCmd"), /CorrErrEn\+ NonFatalErrEn\+ FatalErrEn\+/);
  assert.ok(decoded(1, 0).every((b) => b.registers.every((r) => !/Root/.test(r.name))), "a device has no root registers");
  assert.deepEqual([registerAt(decoded(1, 0), 0x06), registerAt(decoded(1, 0), AER + 5), registerAt(decoded(1, 0), 0xffc)], ["Status", "Advanced Error Reporting: UESta", null]);
  // Capabilities that point at themselves or out of the space end somewhere.
  const wild = new Uint8Array(4096).fill(0x44);
  [wild[6], wild[0x34]] = [0x10, 0x44];
  assert.ok(decode(wild).length < 70);
  assert.ok(decode(new Uint8Array(4096).fill(0xff)).length > 0, "of a function that is gone all bits read 1");
});

test("a dump has the lines that hold something or changed", () => {
  const bytes = new Uint8Array(4096);
  bytes[0x53] = 1;
  assert.deepEqual(dumpLines(bytes, new Set([0x200])), [0, 16, 32, 48, null, 0x50, null, 0x200, null]);
});

const bus = CASES["bus"]!();

test("each cause of the simulator has a colour, light and dark", () => {
  const source = (name: string) => readFileSync(join(process.env["REPORT_ROOM"]!, name), "utf8");
  assert.ok(CAUSES.length >= 20);
  for (const name of CAUSES) assert.equal(source("src/causes.css").split(`--cause-${name.replaceAll(" ", "-")}:`).length - 1, 2, name);
});

test("all ways of a bus have its time together", () => {
  const use = busUse(bus, "pcix", null);
  close(use.payload, 0.4);
  close(use.overhead, 0.4);
  close(use.payload + use.overhead + use.idle, 1);
});

test("the phases of a transaction of a bus fill it, in order, in the ladder", () => {
  const { rungs } = layOut(bus, bus.ladder!, ALL);
  const onBus = rungs.filter((r) => r.packet.class === "bus");
  assert.equal(onBus.length, 3);
  for (const r of onBus) {
    assert.deepEqual([r.bands[0]!.top, r.bands[r.bands.length - 1]!.bottom], [r.y[0], r.y[3]]);
    r.bands.forEach((b, i) => assert.ok(b.bottom > b.top && (i === 0 || b.top === r.bands[i - 1]!.bottom)));
    assert.ok(r.y[3] - r.y[0] >= 40, `${r.y[3] - r.y[0]} px for four phases`);
  }
  assert.deepEqual(onBus.map((r) => answersAtOnce(r.packet)), [true, false, false], "data come back only with the immediate completion");
  const request = rungs.findIndex((r) => r.packet.outcome === "split");
  assert.ok(isRequest(rungs[request]!.packet));
  assert.equal(rungs[partner(rungs, request, "completion")!]!.packet.outcome, "data", "the split completion");
  assert.equal(abridge(rungs[request]!.packet).brief, "MRd 4 B @ 0x1000", "without what follows the address");
});

test("the first transaction of each flow can be compared, with what it passes", () => {
  const panels = comparable(bus, bus.ladder!, NO_FILTER);
  assert.deepEqual(panels.map((p) => p.columns), [["immediate", "pcix", "host.rp0"], ["split", "pcix", "host.rp0"], ["pcie", "host.rp1"]]);
  assert.deepEqual(panels.map((p) => p.packets.length), [3, 4, 2]);
  panels.forEach(({ transaction: t }) => close(t.intervals.reduce((s, i) => s + i.duration_fs, 0), t.end_fs - t.start_fs));
  const own = bus.links.findIndex((l) => l.name === "split");
  assert.deepEqual(comparable(bus, bus.ladder!, { ...NO_FILTER, link: own }).map((p) => p.transaction.flow), [1]);
  assert.equal(comparable(bus, { ...bus.ladder!, to_fs: 3e9 }, NO_FILTER).length, 2, "the window cuts the last");
  assert.deepEqual([axisStep(460 / 192e6, 44), axisStep(460 / 5e9, 44)], [20e6, 500e6]);
});

test("a page without a result, a cut one and a foreign one say so", () => {
  assert.throws(() => readResult("/*TLPLAB_RESULT*/"), /no result yet/);
  assert.throws(() => readResult('{"schema": '), /not valid JSON/);
  assert.throws(() => readResult('{"schema": "tlplab/result/9"}'), /this page reads "tlplab\/result\/1"/);
  assert.equal(readResult(JSON.stringify(quick)).title, quick.title);
});

test("the built page is fresh", () => {
  assert.match(execFileSync("python3", [`${process.env["REPORT_ROOM"]}/check_fresh.py`], { encoding: "utf8" }), /are fresh/);
});
