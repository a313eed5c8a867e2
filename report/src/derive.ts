/** Figures of the part of the run that a filter leaves: exact for the whole run, from bins and samples for a part of it. */
import { matches, type Filter, type Range } from "./filter";
import { BUSY, PARTS } from "./palette";
import type { Attribution, Bar, Flow, Latency, Result, Sample, Series, Utilization } from "./result";

/** The bins that a range touches and the part of each that lies inside. */
export function binsIn(series: Series, range: Range): { bin: number; weight: number }[] {
  const at = (fs: number) => (fs - series.start_fs) / series.bin_fs;
  const [a, b] = [Math.max(0, at(range[0])), Math.min(series.bins, at(range[1]))];
  const out = [];
  for (let bin = Math.floor(a); bin < b; bin++) out.push({ bin, weight: Math.min(b, bin + 1) - Math.max(a, bin) });
  return out;
}

/** Payload rate of a flow in the range; the run's own figure without one. */
export function flowRate(result: Result, flow: number, range: Range | null): number {
  if (!range) return result.flows[flow]!.payload_bps;
  return (flowBytes(result, flow, range) * 8 * 1e15) / (range[1] - range[0]);
}

export function flowBytes(result: Result, flow: number, range: Range | null): number {
  if (!range) return result.flows[flow]!.bytes;
  const data = result.series.flows.find((f) => f.flow === flow)?.bytes ?? [];
  return binsIn(result.series, range).reduce((sum, { bin, weight }) => sum + (data[bin] ?? 0) * weight, 0);
}

/** How a link direction's time was used. */
export function utilization(result: Result, link: number, direction: number, range: Range | null): Utilization {
  const whole = result.links[link]!.directions[direction]!.utilization;
  const data = result.series.directions.find((d) => d.link === link && d.direction === direction);
  if (!range || !data) return whole;
  const bins = binsIn(result.series, range);
  const total = bins.reduce((sum, b) => sum + b.weight, 0);
  if (total === 0) return whole;
  const out = Object.fromEntries(PARTS.map((p) => [p, 0])) as unknown as Utilization;
  for (const part of BUSY) out[part] = bins.reduce((sum, b) => sum + (data[part][b.bin] ?? 0) * b.weight, 0) / total;
  out.idle = Math.max(0, 1 - busy(out));
  return out;
}

export const busy = (u: Utilization): number => BUSY.reduce((sum, p) => sum + u[p], 0);

/** How a bus's time was used: by all ways together, as it carries one transaction at a time. */
export function busUse(result: Result, bus: string, range: Range | null): Utilization {
  const ways = result.links.flatMap((l, i) => (l.bus && l.upper === bus ? [utilization(result, i, 0, range), utilization(result, i, 1, range)] : []));
  const [payload, overhead] = [sum(ways.map((u) => u.payload)), sum(ways.map((u) => u.overhead))];
  return { payload, overhead, dllp: 0, ordered_sets: 0, replay: 0, idle: Math.max(0, 1 - payload - overhead) };
}

const sum = (xs: number[]): number => xs.reduce((a, b) => a + b, 0);

/** The busiest direction of the run; null without links. */
export function busiest(result: Result): number | null {
  let best: number | null = null;
  let most = -1;
  result.links.forEach((l, i) => {
    for (const d of l.directions) if (busy(d.utilization) > most) [best, most] = [i, busy(d.utilization)];
  });
  return best;
}

export interface LatencyView {
  stats: Latency | null;
  bars: Bar[];
  /** How many samples it rests on; null when it is exact. */
  samples: number | null;
}

/** A flow's latencies: its histogram, or, under a filter, its samples. */
export function latencyOf(result: Result, flow: number, filter: Filter): LatencyView {
  const f = result.flows[flow]!;
  if (filter.link === null && filter.range === null) return { stats: f.latency_ns, bars: barsOf(f.histogram), samples: null };
  const samples = result.samples.filter((s) => s.flow === flow && matches(s, filter));
  return { stats: statsOf(samples), bars: barsOf(histogramOf(samples)), samples: samples.length };
}

function statsOf(samples: Sample[]): Latency | null {
  if (samples.length === 0) return null;
  const sorted = samples.map((s) => s.latency_ns).sort((a, b) => a - b);
  const at = (q: number) => sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)]!;
  const mean = sorted.reduce((a, b) => a + b, 0) / sorted.length;
  return { min: sorted[0]!, mean, p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: sorted[sorted.length - 1]! };
}

/** More bars than this are too many to tell apart. */
const MANY_BARS = 60;

/** The result's histograms have 32 steps in each octave. */
const STEPS = 32;

/** The step of a result's histogram that a latency falls into, or that step with its neighbours where `merged` make one. */
function stepOf(latency_ns: number, merged = 1): [from_ns: number, to_ns: number] {
  const fs = Math.max(STEPS, latency_ns * 1e6);
  const width = (2 ** Math.floor(Math.log2(fs)) / STEPS) * merged;
  const from = Math.floor(fs / width) * width;
  return [from / 1e6, (from + width) / 1e6];
}

/** Samples in the steps that the run's own histogram has. */
function histogramOf(samples: Sample[]): Bar[] {
  return gather(samples.map((s) => ({ from_ns: s.latency_ns, to_ns: s.latency_ns, count: 1, causes_ns: s.causes_ns })), 1);
}

/**
 * The bars to draw: the histogram's own steps, never finer ones. Where they are many, 2, 4, 8… neighbours become one bar. The counts
 * and the total of each cause are conserved.
 */
export function barsOf(histogram: Bar[]): Bar[] {
  const steps = histogram.filter((b) => b.count > 0).sort((a, b) => a.from_ns - b.from_ns);
  let bars = steps;
  for (let merged = 2; bars.length > MANY_BARS && merged <= STEPS; merged *= 2) bars = gather(steps, merged);
  return bars;
}

/** One bar for each step, or for each `merged` neighbours, in order. */
function gather(parts: Bar[], merged: number): Bar[] {
  const sums = new Map<number, Bar>();
  for (const part of parts) {
    const [from_ns, to_ns] = stepOf((part.from_ns + part.to_ns) / 2, merged);
    const into = sums.get(from_ns) ?? { from_ns, to_ns, count: 0, causes_ns: part.causes_ns.map(() => 0) };
    into.count += part.count;
    part.causes_ns.forEach((c, k) => (into.causes_ns[k] = (into.causes_ns[k] ?? 0) + c * part.count));
    sums.set(from_ns, into);
  }
  for (const bar of sums.values()) bar.causes_ns = bar.causes_ns.map((c) => c / bar.count);
  return [...sums.values()].sort((a, b) => a.from_ns - b.from_ns);
}

/** What the axis of latency spans: smallest to largest, or some steps around them where they are closer than a step. */
export function axisOf(bars: Bar[], { min, max }: Latency): { lo: number; hi: number; log: boolean } {
  const step = Math.min(...bars.map((b) => b.to_ns - b.from_ns));
  if (max - min >= step) return { lo: min, hi: max, log: min > 0 && max / min > 20 };
  const [first, last] = [bars[0]!, bars[bars.length - 1]!];
  return { lo: Math.max(0, first.from_ns - 4 * step), hi: last.to_ns + 4 * step, log: false };
}

export interface Row extends Omit<Attribution, "place"> {
  /** Null when only samples tell it, which know no places. */
  place: string | null;
}

/**
 * Where a flow's time went, the largest part first. For the whole run by cause, place and flow in front; with a link, what of it is
 * charged to that link; with a time range, from the samples in it (by cause alone where they do not tell places).
 */
export function attributionOf(result: Result, flow: Flow, index: number, filter: Filter): Row[] {
  const sorted = (rows: Row[]) => rows.filter((r) => r.total_ns > 0).sort((a, b) => b.total_ns - a.total_ns);
  const directions = filter.link === null ? null : result.links[filter.link]!.directions.map((d) => `${d.from} → ${d.to}`);
  const here = (place: string | null) => !directions || (place !== null && directions.includes(place));
  if (filter.range) {
    const samples = result.samples.filter((s) => s.flow === index && matches(s, filter));
    const placed = byPlace(result, samples);
    if (placed) return sorted(placed.filter((r) => here(r.place)));
    const totals = result.causes.map((_, k) => samples.reduce((sum, s) => sum + (s.causes_ns[k] ?? 0), 0));
    const all = totals.reduce((a, b) => a + b, 0);
    return sorted(totals.map((t, cause) => ({ cause, place: null, behind: null, total_ns: t, share: all ? t / all : 0 })));
  }
  return sorted(flow.attribution.filter((a) => here(a.place)));
}

/** Samples added up by cause, place and flow in front; null when they do not tell places. */
function byPlace(result: Result, samples: Sample[]): Row[] | null {
  const { places } = result;
  if (!places || samples.every((s) => !s.parts)) return null;
  const sums = new Map<string, Row>();
  let all = 0;
  for (const [cause, place, behind, ns] of samples.flatMap((s) => s.parts ?? [])) {
    const key = `${cause}/${place}/${behind}`;
    const row = sums.get(key) ?? { cause, place: places[place] ?? "?", behind: result.flows[behind]?.name ?? null, total_ns: 0, share: 0 };
    row.total_ns += ns;
    all += ns;
    sums.set(key, row);
  }
  for (const row of sums.values()) row.share = row.total_ns / all;
  return [...sums.values()];
}
