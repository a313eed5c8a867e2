/** What is chosen: a link, a time range, both or nothing. Every view shows the part of the run that is left. */
import type { Result, Sample } from "./result";

export type Range = readonly [from_fs: number, to_fs: number];

export interface Filter {
  link: number | null;
  range: Range | null;
}

export const NO_FILTER: Filter = { link: null, range: null };

/** A range inside the run, the right way round; null when it is empty or the whole run. */
export function clampRange(result: Result, a: number, b: number): Range | null {
  const from = Math.max(result.start_fs, Math.min(a, b));
  const to = Math.min(result.end_fs, Math.max(a, b));
  if (!(to > from) || (from <= result.start_fs && to >= result.end_fs)) return null;
  return [from, to];
}

/** Transactions that were under way in the range, and crossed the link. */
export function matches(sample: Pick<Sample, "start_fs" | "latency_ns" | "links">, filter: Filter): boolean {
  const { link, range } = filter;
  if (link !== null && !sample.links.includes(link)) return false;
  return range === null || (sample.start_fs < range[1] && sample.start_fs + sample.latency_ns * 1e6 > range[0]);
}

/** The index of the link whose direction is this place; null if it is none. */
export function linkOfPlace(result: Result, place: string): number | null {
  const found = result.links.findIndex((l) => l.directions.some((d) => `${d.from} → ${d.to}` === place));
  return found >= 0 ? found : null;
}

/** Links on the way from node `a` to node `b` through the tree. */
export function path(result: Result, a: string, b: string): number[] {
  const parents = new Map(result.topology.nodes.map((n) => [n.name, n.parent]));
  const root = result.topology.nodes.find((n) => n.kind === "host")?.name ?? "host";
  const up = (name: string): string[] => {
    const way: string[] = [];
    for (let at: string | null | undefined = name; at && way.length < 64; at = parents.get(at)) way.push(at);
    return way;
  };
  const from = up(a);
  const to = up(parents.has(b) ? b : root);
  const below = new Set([...from.filter((n) => !to.includes(n)), ...to.filter((n) => !from.includes(n))]);
  return result.links.flatMap((l, i) => (below.has(l.lower) ? [i] : []));
}

/** For each flow the links it uses: those its samples crossed, or, without samples, those on its way through the tree. */
export function flowLinks(result: Result): Set<number>[] {
  const sets = result.flows.map(() => new Set<number>());
  for (const s of result.samples) for (const l of s.links) sets[s.flow]?.add(l);
  result.flows.forEach((f, i) => {
    if (sets[i]!.size === 0) for (const l of path(result, f.device, f.target)) sets[i]!.add(l);
  });
  return sets;
}
