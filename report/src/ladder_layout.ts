/**
 * Where packets stand in the ladder. Time runs downwards, but not evenly: every packet gets a line of its own, and long silences are
 * shortened, so that a step is always a step one can see. The order of events is kept exactly.
 */
import type { Filter } from "./filter";
import type { Ladder, Packet, Result } from "./result";

export const ROW = 26;
/** Silence between two starts that is written into the gutter. */
const SILENCE = ROW * 1.5;
/** Height of a phase, on average. */
const BAND = 14;

export interface Rung {
  packet: Packet;
  /** Columns it leaves and reaches. */
  from: number;
  to: number;
  /** Height of its line, down to the next packet's. */
  height: number;
  top: number;
  /** Pixels: first and last bit at the sender, first and last bit at the receiver. */
  y: readonly [number, number, number, number];
  /** Of a transaction of a bus, its phases in the same pixels. */
  bands: Band[];
  /** Femtoseconds of silence before it, when it is worth saying. */
  gap: number;
}

/** A phase of a transaction of a bus; in pixels from `top` to `bottom`. */
export interface Band {
  cause: number;
  fs: number;
  top: number;
  bottom: number;
}

/** The phases of a packet, by a scale from femtoseconds to pixels. */
export function bandsOf(p: Packet, y: (fs: number) => number): Band[] {
  let at = p.start_fs;
  return (p.phases ?? []).map(([cause, fs]) => ({ cause, fs, top: y(at), bottom: y((at += fs)) }));
}

/** Do data of a read come back in the transaction that asks for them? */
export const answersAtOnce = (p: Packet): boolean => p.outcome === "data" && p.role === "read";

export interface Rungs {
  columns: string[];
  rungs: Rung[];
  height: number;
  /** Femtoseconds that one line typically stands for. */
  unit: number;
  /** The largest number of lines a packet's arrow reaches down. */
  reach: number;
}

export interface Shown extends Filter {
  dllps: boolean;
  /** Only this transaction's packets. */
  transaction: number | null;
}

/** The column of a link end: its own, or that of the nearest ancestor that has one. */
function columnOf(result: Result, columns: string[], name: string): number {
  const parents = new Map(result.topology.nodes.map((n) => [n.name, n.parent]));
  for (let at: string | null | undefined = name, n = 0; at && n < 64; at = parents.get(at), n++) {
    const found = columns.indexOf(at);
    if (found >= 0) return found;
  }
  return -1;
}

export function shownPackets(ladder: Ladder, shown: Shown): Packet[] {
  const { link, range, dllps, transaction } = shown;
  return ladder.packets.filter(
    (p) =>
      (link === null || p.link === link) && (dllps || p.class !== "dllp") && (transaction === null || p.transaction === transaction) &&
      (range === null || (p.start_fs < range[1] && p.arrive_fs > range[0])),
  );
}

export function layOut(result: Result, ladder: Ladder, shown: Shown): Rungs {
  const packets = shownPackets(ladder, shown).sort((a, b) => a.start_fs - b.start_fs || a.id - b.id);
  const all = ladder.columns;
  const ends = result.links.map((l) => l.directions.map((d) => [columnOf(result, all, d.from), columnOf(result, all, d.to)] as const));
  const used = new Set(packets.flatMap((p) => [...ends[p.link]![p.direction]!]));
  const kept = all.map((_, i) => i).filter((i) => used.has(i));
  const column = new Map(kept.map((c, i) => [c, i]));

  const unit = typicalStep(packets);
  const heights = packets.map((p, i) => {
    const next = packets[i + 1];
    const until = next ? next.start_fs - p.start_fs : Math.max(p.arrive_fs - p.start_fs, unit);
    const height = ROW + 12 * Math.log2(1 + Math.max(0, until / unit - 1));
    // Phases that are over when the next packet starts get room to be told apart.
    const times = until / Math.max(1, p.arrive_fs - p.start_fs);
    const bands = times >= 1 ? (p.phases?.length ?? 0) * BAND * Math.min(2, times) : 0;
    return Math.round(Math.max(height, bands));
  });
  const tops: number[] = [];
  let height = ROW;
  for (const h of heights) {
    tops.push(height);
    height += h;
  }
  const y = scale(packets.map((p) => p.start_fs), tops, heights, unit);
  let reach = 0;
  const rungs = packets.map((packet, i): Rung => {
    const [from, to] = ends[packet.link]![packet.direction]!;
    const first = tops[i]!;
    const end = Math.max(first + 2, y(packet.end_fs));
    const arrive = Math.max(end, y(packet.arrive_fs));
    const arriving = Math.max(first, Math.min(arrive - 2, y(packet.arrive_fs - (packet.end_fs - packet.start_fs))));
    const silent = i > 0 && heights[i - 1]! > SILENCE ? packet.start_fs - packets[i - 1]!.start_fs : 0;
    let down = i;
    while (down + 1 < packets.length && tops[down + 1]! <= arrive) down++;
    reach = Math.max(reach, down - i);
    return {
      packet, from: column.get(from) ?? 0, to: column.get(to) ?? 0, height: heights[i]!, top: first, y: [first, end, arriving, arrive],
      bands: bandsOf(packet, y), gap: silent,
    };
  });
  const bottom = rungs.reduce((most, r) => Math.max(most, r.y[3]), height) + ROW;
  return { columns: kept.map((c) => all[c]!), rungs, height: bottom, unit, reach };
}

/** The median time between starts: the time that one line stands for. */
function typicalStep(packets: Packet[]): number {
  const steps = packets.slice(1).map((p, i) => p.start_fs - packets[i]!.start_fs).filter((d) => d > 0).sort((a, b) => a - b);
  return steps[Math.floor(steps.length / 2)] ?? 1e6;
}

/** Time to pixels: linear between one start and the next. */
function scale(starts: number[], tops: number[], heights: number[], unit: number): (fs: number) => number {
  return (fs) => {
    let [lo, hi] = [0, starts.length - 1];
    while (lo < hi) {
      const middle = (lo + hi + 1) >> 1;
      if (starts[middle]! <= fs) lo = middle;
      else hi = middle - 1;
    }
    if (starts.length === 0) return 0;
    const next = starts[lo + 1];
    const span = next === undefined ? Math.max(unit, 1) : next - starts[lo]!;
    const part = span > 0 ? (fs - starts[lo]!) / span : 0;
    const limit = next === undefined ? 8 : 1;
    return tops[lo]! + Math.max(0, Math.min(limit, part)) * heights[lo]!;
  };
}

export const isRequest = (p: Packet): boolean => p.role === "read" || p.role === "write";
export const isCompletion = (p: Packet): boolean => p.role === "completion";

/** The packet's request (before it) or completion (after it), within its transaction and, where known, of its tag. */
export function partner(rungs: Rung[], from: number, which: "request" | "completion"): number | null {
  const p = rungs[from]?.packet;
  if (!p || p.transaction === null) return null;
  const wanted = which === "request" ? isRequest : isCompletion;
  const fits = (q: Packet) => q.transaction === p.transaction && wanted(q) && (p.tag == null || q.tag == null || p.tag === q.tag);
  const step = which === "request" ? -1 : 1;
  for (let i = from + step; i >= 0 && i < rungs.length; i += step) if (fits(rungs[i]!.packet)) return i;
  return null;
}

/** The next or previous packet of the same transaction. */
export function along(rungs: Rung[], from: number, step: 1 | -1): number | null {
  const p = rungs[from]?.packet;
  if (!p || p.transaction === null) return null;
  for (let i = from + step; i >= 0 && i < rungs.length; i += step) if (rungs[i]!.packet.transaction === p.transaction) return i;
  return null;
}

/** A field of a packet's text: `len` of "MWr, len 64, …"; empty where it has none. */
export const field = (p: Packet, name: string): string => new RegExp(`, ${name} ([^ ,]*[^ ,:])`).exec(p.text)?.[1] ?? "";

/** A packet's text made short enough for an arrow: "MWr 256 B @ 0x1000", "CplD 64 B tag 0x1e"; and its address, empty without one. */
export function abridge(p: Packet): { brief: string; address: string } {
  const text = p.text || p.kind;
  const told = (name: string): string => field(p, name);
  const address = told("addr");
  const dw = Number(told("len"));
  if (!p.role || (dw === 0 && !address)) return { brief: text, address };
  const tag = told("tag");
  const size = dw > 0 ? ` ${requested(dw, told("first"), told("last")) ?? completed(dw, told("lowaddr"), told("byte count"))} B` : "";
  return { brief: `${p.kind}${size}${address ? ` @ ${address}` : tag && ` tag ${tag}`}`, address };
}

/** Bytes from the first enabled one to the last; null without byte enables. */
function requested(dw: number, first: string, last: string): number | null {
  if (first === "") return null;
  const [low, high] = [Number(first), dw === 1 ? Number(first) : Number(last)];
  if (!(low > 0 && high > 0)) return 0;
  return dw * 4 - Math.log2(low & -low) - Math.clz32(high) + 28;
}

/** Bytes of a completion's data that were asked for. */
function completed(dw: number, lowaddr: string, left: string): number {
  const most = dw * 4 - (Number(lowaddr) & 3);
  return left === "" ? most : Math.min(most, Number(left));
}
