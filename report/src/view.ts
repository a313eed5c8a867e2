/** What every part of the page gets: the result, the filter, and the ways to change it. */
import type { Filter, Range } from "./filter";
import type { Result } from "./result";
import type { Listed } from "./transactions";

/** A transaction that is looked at. A new object asks for it anew. */
export interface Chosen {
  /** Its place in the list of transactions. */
  row: number;
  /** What is brought into sight: its line in the table, its packets in the ladder, or nothing as the line is in sight. */
  at: "table" | "ladder" | "line";
  /** The figure that it is the nearest to. */
  sought?: { name: string; latency_ns: number };
}

export interface View {
  result: Result;
  filter: Filter;
  /** For each flow, the links it uses. */
  flowLinks: Set<number>[];
  /** Chooses a link, or clears the choice when it is the chosen one. */
  chooseLink(link: number | null): void;
  chooseRange(range: Range | null): void;
  /** Every part of the run again. */
  clearFilter(): void;
  transactions: Listed[];
  chosen: Chosen | null;
  /** What the table of transactions is searched for. */
  sought: string;
  seek(text: string): void;
  choose(chosen: Chosen): void;
}

/** Flows that use the chosen link; all without one. */
export const shownFlows = (view: View): number[] =>
  view.result.flows.flatMap((_, i) => (view.filter.link === null || view.flowLinks[i]!.has(view.filter.link) ? [i] : []));

export const shownRange = (view: View): Range => view.filter.range ?? [view.result.start_fs, view.result.end_fs];
