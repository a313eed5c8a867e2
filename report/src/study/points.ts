/** The points of a study: what each is, the means of its runs, which are left by a filter, and which nothing beats. */
import { expand, type StudyDocument, type Value } from "./document";

/** Quantiles 0.975 of Student's distribution, from one degree of freedom on: those of `tlplab sweep`. */
const STUDENT = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
  2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/** A mean, and half of its 95 % confidence interval; null of a single run. */
export interface Mean {
  mean: number;
  half: number | null;
}

/** The mean of some runs, as `tlplab sweep` tells it; null of none. */
export function meanOf(values: readonly number[]): Mean | null {
  const [first] = values;
  if (first === undefined) return null;
  if (values.length === 1) return { mean: first, half: null };
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const freedom = values.length - 1;
  const variance = values.reduce((sum, v) => sum + (v - mean) * (v - mean), 0) / freedom;
  const student = STUDENT[freedom - 1] ?? 1.96 + 2.373 / freedom;
  return { mean, half: student * Math.sqrt(variance / values.length) };
}

export interface AxisOfPoints {
  name: string;
  unit: string | null;
  /** The values that occur: numbers in their order, others as the study has them. */
  values: Value[];
  /** For each point, the place of its value in `values`. */
  at: Int32Array;
}

export interface Points {
  study: StudyDocument;
  count: number;
  /** The number of each point in the study. */
  numbers: number[];
  /** The first row of each point, and where the last one ends. */
  starts: Int32Array;
  axes: AxisOfPoints[];
  /** Runs that went to their end. */
  runs: Int32Array;
  /** Whether some point has several runs. */
  repeated: boolean;
  seeds: (number | null)[];
  limits: (string | null)[];
  /** For each point why it has no figures, if so. */
  trouble: ({ kind: "failed" | "refused"; message: string } | null)[];
  /** Means of a figure for each point, computed when they are first asked for. */
  figure(index: number): (Mean | null)[];
  /** What each run of a point came to. */
  runsOf(index: number, point: number): number[];
}

export function pointsOf(study: StudyDocument): Points {
  const { rows, columns } = study;
  const point = expand(columns.point, rows);
  const firsts: number[] = [];
  for (let row = 0; row < rows; row++) if (row === 0 || point[row] !== point[row - 1]) firsts.push(row);
  const count = firsts.length;
  const starts = Int32Array.from([...firsts, rows]);
  const kind = expand(columns.kind, rows);
  const message = expand(columns.message, rows);
  const limit = expand(columns.limit, rows);
  const seed = expand(columns.seed, rows);
  const runs = new Int32Array(count);
  const trouble: Points["trouble"] = [];
  for (let p = 0; p < count; p++) {
    let why: Points["trouble"][number] = null;
    for (let row = starts[p]!; row < starts[p + 1]!; row++) {
      const came = kind[row]!;
      if (came === "done") runs[p]!++;
      else why ??= { kind: came, message: message[row] ?? "" };
    }
    trouble.push(why);
  }
  const cells = new Map<number, (number | null)[]>();
  const means = new Map<number, (Mean | null)[]>();
  const column = (index: number): (number | null)[] => {
    const told = columns.figures[index]!;
    const found = cells.get(index) ?? ("means" in told ? [] : expand(told, rows));
    cells.set(index, found);
    return found;
  };
  const ofPoint = (index: number, p: number): Mean | null => {
    const told = columns.figures[index]!;
    if (!("means" in told)) return meanOf(runsOf(index, p));
    const mean = told.means[p];
    return mean ? { mean: mean[0], half: mean[1] } : null;
  };
  const runsOf = (index: number, p: number): number[] => {
    const values: number[] = [];
    for (let row = starts[p]!; row < starts[p + 1]!; row++) {
      const value = column(index)[row];
      if (kind[row] === "done" && value != null) values.push(value);
    }
    return values;
  };
  return {
    study, count, starts, runs, trouble, runsOf,
    numbers: firsts.map((row) => point[row]!),
    axes: study.axes.map((axis, a) => axisOf(axis.name, axis.unit, expand(columns.axes[a]!, rows), firsts)),
    repeated: rows > count,
    seeds: firsts.map((row) => seed[row] ?? null),
    limits: firsts.map((row) => limit[row] ?? null),
    figure: (index) => {
      const found = means.get(index) ?? firsts.map((_, p) => ofPoint(index, p));
      means.set(index, found);
      return found;
    },
  };
}

function axisOf(name: string, unit: string | null, rows: Value[], firsts: number[]): AxisOfPoints {
  const values = [...new Set(firsts.map((row) => rows[row]!))];
  if (values.every((v) => typeof v === "number")) values.sort((a, b) => (a as number) - (b as number));
  const place = new Map(values.map((v, i) => [v, i]));
  return { name, unit, values, at: Int32Array.from(firsts, (row) => place.get(rows[row]!)!) };
}

/** Values of axes that are kept: none for an axis means all. */
export type Kept = ReadonlyMap<number, ReadonlySet<number>>;

/** The points that a filter leaves. */
export function filtered(points: Points, kept: Kept): number[] {
  const left: number[] = [];
  for (let p = 0; p < points.count; p++) {
    let keep = true;
    for (const [axis, values] of kept) keep &&= values.has(points.axes[axis]!.at[p]!);
    if (keep) left.push(p);
  }
  return left;
}

/** Those of some points that none of them beats: no other is better by one figure and as good by the other. */
export function front(of: readonly number[], x: readonly (Mean | null)[], y: readonly (Mean | null)[], xMore: boolean, yMore: boolean): Set<number> {
  // As if less were better by both.
  const at = (p: number): [number, number] => [x[p]!.mean * (xMore ? -1 : 1), y[p]!.mean * (yMore ? -1 : 1)];
  const sorted = of.filter((p) => x[p] && y[p]).map((p) => [p, ...at(p)] as const).sort((a, b) => a[1] - b[1] || a[2] - b[2]);
  const best = new Set<number>();
  let least = Infinity;
  let i = 0;
  while (i < sorted.length) {
    const [, left, low] = sorted[i]!;
    // Of the same x only those with the best y, and only if no smaller x has as good a one.
    if (low < least) for (let k = i; k < sorted.length && sorted[k]![1] === left && sorted[k]![2] === low; k++) best.add(sorted[k]![0]);
    least = Math.min(least, low);
    while (i < sorted.length && sorted[i]![1] === left) i++;
  }
  return best;
}

/** Points in groups by their values of some axes, in the order of these values. */
export function grouped(points: Points, of: readonly number[], axes: readonly number[]): { key: number[]; points: number[] }[] {
  const groups = new Map<string, { key: number[]; points: number[] }>();
  for (const p of of) {
    const key = axes.map((a) => points.axes[a]!.at[p]!);
    const name = key.join(" ");
    const group = groups.get(name) ?? { key, points: [] };
    group.points.push(p);
    groups.set(name, group);
  }
  return [...groups.values()].sort((a, b) => a.key.map((k, i) => k - b.key[i]!).find((d) => d !== 0) ?? 0);
}

/** The axes of which some of these points have different values. */
export function varying(points: Points, of: readonly number[]): number[] {
  const [first] = of;
  if (first === undefined) return [];
  return points.axes.flatMap(({ at }, a) => (of.some((p) => at[p] !== at[first]) ? [a] : []));
}

/**
 * Whether an axis follows from another, as those of zipped axes do: it has one value for each value of the other, and goes along with it. Numbers
 * go one way only, anything else has each value in one stretch; a random sample has neither.
 */
export function tied(points: Points, of: readonly number[], axis: number, to: number): boolean {
  const [own, other] = [points.axes[axis]!, points.axes[to]!];
  const found = new Map<number, number>();
  for (const p of of) {
    const value = found.get(other.at[p]!);
    if (value !== undefined && value !== own.at[p]) return false;
    found.set(other.at[p]!, own.at[p]!);
  }
  if (other.unit === null) return true;
  const along = [...found].sort(([a], [b]) => a - b).map(([, value]) => value);
  const steps = along.slice(1).map((v, i) => v - along[i]!).filter((step) => step !== 0);
  return own.unit !== null ? steps.every((step) => step > 0 === steps[0]! > 0) : steps.length === new Set(along).size - 1;
}

/** The axes that tell points apart beside the given ones: they vary, and do not follow from one of these. */
export const besides = (points: Points, of: readonly number[], given: readonly number[]): number[] =>
  varying(points, of).filter((a) => !given.some((g) => g >= 0 && (g === a || tied(points, of, a, g))));

/** The command that makes the report of a point, if it has one. */
export function commandOf(points: Points, point: number): string | null {
  if (points.study.command === null) return null;
  const { head, sets } = points.study.command;
  const row = points.starts[point]!;
  const own = sets.map((column) => (Array.isArray(column) ? column[row] : "all" in column ? column.all : column.of[column.at[row]!])).filter((set) => set !== "");
  const seed = points.seeds[point];
  return [head, ...own, ...(seed === null || seed === undefined ? [] : [`--seed ${seed}`]), `--report point-${points.numbers[point]}.html`].join(" ");
}
