/**
 * An invented run with a bus. Its ladder is that of studies/differential/bus-read.toml: a doubleword read over PCI-X at once, over
 * PCI-X split, and over PCI Express (Figure 4 of Miller et al., ANCS 2009).
 */
import { mock } from "./mock";
import type { Ladder, Packet, Result, Transaction } from "../src/result";

const [PROCESSING, SERIALISATION, ADDRESS, SELECT, DATA, TURNAROUND] = [0, 1, 12, 13, 15, 16] as const;
const CLOCK = 7_500_000;
const MODE = "PCI-X 133 64b";

export function busRead(): Result {
  const read = (name: string, under: string, width: number) => ({ name, under, width, gen: 1, op: "read" as const, size: 4, share: 0.01 });
  const result = mock({
    title: "One read, over PCI-X and over PCIe", switches: [{ name: "pcix", under: "host.rp0", gen: 1, width: 8 }],
    devices: [read("immediate", "pcix", 8), read("split", "pcix", 8), read("pcie", "host.rp1", 1)], ladder: false,
  });
  for (const node of result.topology.nodes) if (node.name === "pcix") Object.assign(node, { kind: "bus", model: MODE });
  result.links.filter((l) => l.upper === "pcix").forEach((l) => {
    l.bus = MODE;
    l.directions.forEach((d, k) => (d.utilization = { payload: 0.1, overhead: 0.05 + 0.1 * k, dllp: 0, ordered_sets: 0, replay: 0, idle: 0.85 - 0.1 * k }));
  });
  return { ...result, ladder: ladder(result) };
}

function ladder(result: Result): Ladder {
  const packets: Packet[] = [];
  const link = (name: string) => result.links.findIndex((l) => l.name === name);
  const packet = (t: Transaction, on: string, direction: number, start: number, fs: number, p: Partial<Packet>): number => {
    const kind = p.kind!;
    packets.push({
      id: packets.length, link: link(on), direction, start_fs: start, end_fs: start + fs, arrive_fs: start + fs, class: "tlp", bytes: 24, sequence: 0,
      text: `${kind}, len 1, requester 00:00.0, tag 0x0${t.id}, last 0x0, first 0xf, addr 0x1000: data`, flow: t.flow, transaction: t.id, tag: t.id, replay: false, bad: false, nullified: false, phases: [], outcome: null, kind, role: kind.startsWith("Cpl") ? "completion" : kind.endsWith("Wr") ? "write" : "read", ...p,
    });
    return start + fs;
  };
  const charge = (t: Transaction, place: string, parts: [cause: number, fs: number][]) => {
    for (const [cause, fs] of parts) {
      t.intervals.push({ cause, place, behind: null, start_fs: t.end_fs, duration_fs: fs });
      t.end_fs += fs;
    }
  };
  const begin = (flow: number, at: number): Transaction => ({ id: flow, flow, start_fs: at, end_fs: at, text: "read of 4 B at 0x1000", ending: "done", intervals: [] });
  const wire = (t: Transaction, on: string, direction: number, fs: number, kind: string) => {
    const d = result.links[link(on)]!.directions[direction]!;
    packet(t, on, direction, t.end_fs, fs, { kind });
    charge(t, `${d.from} → ${d.to}`, [[SERIALISATION, fs]]);
  };
  const bus = (t: Transaction, on: string, direction: number, wait: number, clocks: [cause: number, n: number][], kind: string, outcome: "data" | "split" | "retry" | "abort") => {
    const d = result.links[link(on)]!.directions[direction]!;
    const phases = clocks.map(([cause, n]): [number, number] => [cause, n * CLOCK]);
    const place = `${d.from} → ${d.to}`;
    charge(t, place, [[PROCESSING, wait]]);
    packet(t, on, direction, t.end_fs, phases.reduce((sum, [, fs]) => sum + fs, 0), { kind, class: "bus", phases, outcome, bytes: 0, sequence: null });
    charge(t, place, phases);
  };
  const SLOW: [number, number][] = [[ADDRESS, 3], [SELECT, 3], [DATA, 1], [TURNAROUND, 1]];
  const FAST: [number, number][] = [[ADDRESS, 2], [SELECT, 1], [DATA, 1], [TURNAROUND, 1]];

  const immediate = begin(0, 0);
  wire(immediate, "pcix", 1, 12e6, "MRd");
  bus(immediate, "immediate", 1, 33e6, SLOW, "MRd", "data");
  wire(immediate, "pcix", 0, 12e6, "CplD");
  const split = begin(1, 2e9);
  wire(split, "pcix", 1, 12e6, "MRd");
  bus(split, "split", 1, 35.5e6, SLOW, "MRd", "split");
  bus(split, "split", 0, 30e6, FAST, "CplD", "data");
  wire(split, "pcix", 0, 12e6, "CplD");
  const pcie = begin(2, 4e9);
  wire(pcie, "pcie", 1, 96e6, "MRd");
  wire(pcie, "pcie", 0, 96e6, "CplD");
  return { columns: ["pcie", "host.rp1", "immediate", "split", "pcix", "host.rp0"], from_fs: 0, to_fs: pcie.end_fs, packets, transactions: [immediate, split, pcie] };
}
