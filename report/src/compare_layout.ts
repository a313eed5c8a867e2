/** Transactions beside each other: each from its start, all to one scale of time. */
import { matches, type Filter } from "./filter";
import type { Ladder, Packet, Result, Transaction } from "./result";

export interface Panel {
  transaction: Transaction;
  packets: Packet[];
  /** Names of the nodes that its packets pass, from left to right. */
  columns: string[];
}

/** The first transaction of each flow that the window holds whole, if the filter leaves it. */
export function comparable(result: Result, ladder: Ladder, filter: Filter): Panel[] {
  const first = new Map<number, Panel>();
  for (const t of [...ladder.transactions].sort((a, b) => a.start_fs - b.start_fs || a.id - b.id)) {
    if (first.has(t.flow) || t.start_fs < ladder.from_fs || t.end_fs > ladder.to_fs) continue;
    const packets = ladder.packets.filter((p) => p.transaction === t.id).sort((a, b) => a.start_fs - b.start_fs || a.id - b.id);
    const links = packets.map((p) => p.link);
    const crossed = { flow: t.flow, start_fs: t.start_fs, latency_ns: (t.end_fs - t.start_fs) / 1e6, links, causes_ns: [] };
    if (packets.length > 0 && matches(crossed, filter)) first.set(t.flow, { transaction: t, packets, columns: columnsOf(result, ladder, links) });
  }
  return [...first.values()].sort((a, b) => a.transaction.flow - b.transaction.flow);
}

/** In the order of the ladder: devices left, root ports right. */
function columnsOf(result: Result, ladder: Ladder, links: number[]): string[] {
  const ends = new Set(links.flatMap((l) => [result.links[l]!.lower, result.links[l]!.upper]));
  return ladder.columns.filter((name) => ends.has(name));
}

/** A step of the axis that is round and at least `least` pixels high, at so many pixels for a femtosecond. */
export function axisStep(scale: number, least: number): number {
  const rough = least / scale;
  const ten = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * ten).find((s) => s >= rough)!;
}
