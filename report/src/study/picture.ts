/** What a picture shows: marks at places, found from points. No drawing here. */
import { type Chosen } from "./state";
import { besides, front, grouped, tied, varying, type Mean, type Points } from "./points";
import { ends } from "./units";

/** A scale: numbers, or the values of an axis one beside the other. */
export type Scale =
  | { kind: "numbers"; name: string; unit: string; low: number; high: number; log: boolean; at: number[] | null }
  | { kind: "values"; name: string; axis: number; shown: number[] };

export interface Line {
  points: number[];
  x: number[];
  y: number[];
  half: number[];
  /** Place of the value that colours it. */
  colour: number;
  /** Place of the value that dashes it; 0 without one. */
  dash: number;
}

export interface Cell {
  column: number;
  row: number;
  points: number[];
  value: number;
}

export interface Panel {
  /** The value that this picture is of; -1: there is one picture. */
  beside: number;
  x: Scale;
  y: Scale;
  lines: Line[];
  dots: { point: number; x: number; y: number; colour: number; best: boolean }[];
  cells: Cell[];
}

/** What a map's colours go from and to. */
export interface Range {
  low: number;
  high: number;
  log: boolean;
}

/** Where a value is in it, from 0 to 1. */
export function shareOf({ low, high, log }: Range, value: number): number {
  if (!(high > low)) return 0.5;
  return log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
}

export interface Picture {
  panels: Panel[];
  /** Values of a map's colours. */
  range: Range | null;
  /** Axis that dashes lines; -1: none. */
  dashed: number;
  /** Axes by which points differ though they look the same. */
  unseen: number[];
  /** Points that have no figure to be shown. */
  missing: number;
}

/** Room above the highest value, and around points. */
const ROOM = 1.08;

/** From so many times the smallest value on, the scale of a figure is logarithmic unless somebody wants it otherwise. */
const WIDE = 50;
/** Kinds of dashes that are told apart. */
export const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]] as const;

function log(values: readonly number[], wanted: boolean | null, usual: (low: number, high: number) => boolean): boolean {
  const [low, high] = ends(values);
  return low > 0 && Number.isFinite(high) && (wanted ?? usual(low, high));
}

const wide = (low: number, high: number): boolean => high >= WIDE * low;

/** Whether values, in their order, are rather a factor apart than a difference: 32, 64, 128, but not 5, 10, 15. */
export function byFactors(values: readonly number[]): boolean {
  const [low, high] = ends(values);
  if (values.length < 3 || !(low > 0) || high < 4 * low) return false;
  const uneven = (of: readonly number[]): number => {
    const gaps = of.slice(1).map((v, i) => (v - of[i]!) / (of[of.length - 1]! - of[0]!));
    return gaps.reduce((sum, gap) => sum + (gap - 1 / gaps.length) ** 2, 0);
  };
  return uneven(values.map(Math.log)) < uneven(values);
}

/** The scale of a figure: from 0, or logarithmic; around the points in a front. */
function scaleOf(name: string, unit: string, values: readonly number[], logarithmic: boolean, fromZero: boolean): Scale {
  let [low, high] = ends(values);
  if (!Number.isFinite(low)) [low, high] = [0, 1];
  if (logarithmic) {
    const room = Math.max(1.02, (high / low) ** 0.04);
    return { kind: "numbers", name, unit, low: low / room, high: high * room, log: true, at: null };
  }
  if (fromZero) {
    [low, high] = [Math.min(0, low * ROOM), Math.max(0, high * ROOM)];
    if (low === high) high = 1;
  } else {
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    [low, high] = [low >= 0 ? Math.max(0, low - room) : low - room, high + room];
  }
  return { kind: "numbers", name, unit, low, high, log: false, at: null };
}

/** The scale of an axis that goes from left to right: of numbers where they stand, of others one beside the other. */
function scaleOfAxis(points: Points, of: readonly number[], axis: number, wanted: boolean | null): Scale {
  const { name, unit, values, at } = points.axes[axis]!;
  const shown = [...new Set(of.map((p) => at[p]!))].sort((a, b) => a - b);
  if (unit === null) return { kind: "values", name, axis, shown };
  const numbers = shown.map((i) => values[i] as number);
  const scale = scaleOf(name, unit, numbers, log(numbers, wanted, () => byFactors(numbers)), false);
  return scale.kind === "numbers" ? { ...scale, at: numbers } : scale;
}

/** The name of an axis, and of those that go along with it. */
export function nameWith(points: Points, of: readonly number[], axis: number): string {
  const others = varying(points, of).filter((a) => a !== axis && tied(points, of, a, axis));
  const { name } = points.axes[axis]!;
  return others.length > 0 ? `${name} with ${others.map((a) => points.axes[a]!.name).join(", ")}` : name;
}

const placeOn = (scale: Scale, points: Points, axis: number) => (p: number): number => {
  const place = points.axes[axis]!.at[p]!;
  return scale.kind === "values" ? scale.shown.indexOf(place) : (points.axes[axis]!.values[place] as number);
};

export function pictureOf(points: Points, left: readonly number[], chosen: Chosen): Picture {
  const y = points.figure(chosen.y);
  const x = chosen.kind === "front" ? points.figure(chosen.across) : null;
  const shown = left.filter((p) => y[p] && (!x || x[p]));
  const missing = left.length - shown.length;
  if (shown.length === 0) return { panels: [], range: null, dashed: -1, unseen: [], missing };
  if (chosen.kind === "front") return { ...frontOf(points, shown, chosen, x!, y), missing };
  const beside = chosen.beside >= 0 && chosen.beside !== chosen.x && !(chosen.kind === "map" && chosen.beside === chosen.up) ? chosen.beside : -1;
  const groups = beside < 0 ? [{ key: [-1], points: shown }] : grouped(points, shown, [beside]);
  const draw = chosen.kind === "map" ? mapOf : linesOf;
  return { ...draw(points, shown, groups, chosen, y, beside), missing };
}

type Drawn = Omit<Picture, "missing">;
type Groups = { key: number[]; points: number[] }[];

function linesOf(points: Points, shown: number[], groups: Groups, chosen: Chosen, y: (Mean | null)[], beside: number): Drawn {
  const { x: axis, colour } = chosen;
  const figure = points.study.figures[chosen.y]!;
  const x = scaleOfAxis(points, shown, axis, chosen.logX);
  const place = placeOn(x, points, axis);
  const values = shown.flatMap((p) => [y[p]!.mean, y[p]!.mean + (y[p]!.half ?? 0)]);
  // What goes down to nothing cannot be on a logarithmic scale, and an interval's lower end may.
  const scale = scaleOf(figure.name, figure.unit, values, log(values, chosen.logY, wide), true);
  const others = besides(points, shown, [axis, beside]);
  const [dashed = -1, ...more] = besides(points, shown, [axis, beside, colour]);
  const dashes = dashed >= 0 && more.length === 0 && points.axes[dashed]!.values.length <= DASHES.length;
  const panels = groups.map(({ key, points: of }) => ({
    beside: key[0]!, x, y: scale, dots: [], cells: [],
    lines: grouped(points, of, others).map((group): Line => {
      const sorted = [...group.points].sort((a, b) => place(a) - place(b));
      return {
        points: sorted, x: sorted.map(place), y: sorted.map((p) => y[p]!.mean), half: sorted.map((p) => y[p]!.half ?? 0),
        colour: colour >= 0 && colour !== axis ? points.axes[colour]!.at[sorted[0]!]! : -1,
        dash: dashes ? points.axes[dashed]!.at[sorted[0]!]! : 0,
      };
    }),
  }));
  return { panels, range: null, dashed: dashes ? dashed : -1, unseen: dashes || dashed < 0 ? [] : [dashed, ...more] };
}

function mapOf(points: Points, shown: number[], groups: Groups, chosen: Chosen, y: (Mean | null)[], beside: number): Drawn {
  const scale = (axis: number): Scale & { kind: "values" } => {
    const { name, at } = points.axes[axis]!;
    return { kind: "values", name, axis, shown: [...new Set(shown.map((p) => at[p]!))].sort((a, b) => a - b) };
  };
  const [columns, rows] = [scale(chosen.x), scale(chosen.up)];
  const panels = groups.map(({ key, points: of }) => ({
    beside: key[0]!, x: columns, y: rows, lines: [], dots: [],
    cells: grouped(points, of, [chosen.x, chosen.up]).map((cell): Cell => ({
      column: columns.shown.indexOf(cell.key[0]!), row: rows.shown.indexOf(cell.key[1]!), points: cell.points,
      value: cell.points.reduce((sum, p) => sum + y[p]!.mean, 0) / cell.points.length,
    })),
  }));
  const values = panels.flatMap(({ cells }) => cells.map(({ value }) => value));
  const [low, high] = ends(values);
  return { panels, range: { low, high, log: log(values, chosen.logY, wide) }, dashed: -1, unseen: besides(points, shown, [chosen.x, chosen.up, beside]) };
}

function frontOf(points: Points, shown: number[], chosen: Chosen, x: (Mean | null)[], y: (Mean | null)[]): Drawn {
  const scale = (index: number, of: (Mean | null)[], wanted: boolean | null): Scale => {
    const { name, unit } = points.study.figures[index]!;
    const values = shown.map((p) => of[p]!.mean);
    return scaleOf(name, unit, values, log(values, wanted, wide), false);
  };
  const best = front(shown, x, y, chosen.xMore, chosen.yMore);
  const dots = shown.map((point) => ({
    point, x: x[point]!.mean, y: y[point]!.mean, best: best.has(point), colour: chosen.colour < 0 ? -1 : points.axes[chosen.colour]!.at[point]!,
  }));
  const panel: Panel = { beside: -1, x: scale(chosen.across, x, chosen.logX), y: scale(chosen.y, y, chosen.logY), lines: [], dots, cells: [] };
  return { panels: [panel], range: null, dashed: -1, unseen: [] };
}
