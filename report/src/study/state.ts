/** What is chosen on the page: the picture, what is on its axes, which points are left. It is kept in the address, so that a view can be passed on. */
import { besides, varying, type Points } from "./points";

export type Kind = "lines" | "map" | "front";

export interface Chosen {
  kind: Kind;
  /** Axis from left to right, of lines and maps. */
  x: number;
  /** Axis from bottom to top, of maps. */
  up: number;
  /** Figure that goes up, that colours a map, or that goes up in a front. */
  y: number;
  /** Figure from left to right in a front. */
  across: number;
  xMore: boolean;
  yMore: boolean;
  /** Axis that colours lines and points; -1: none. */
  colour: number;
  /** Axis of which each value has a picture of its own; -1: none. */
  beside: number;
  /** Logarithmic scales; null: where values are wide apart. */
  logX: boolean | null;
  logY: boolean | null;
  /** Kept values of axes, by their places. */
  kept: ReadonlyMap<number, ReadonlySet<number>>;
  /** Figures in the table. */
  table: number[];
  sort: { by: string; down: boolean };
  /** A point that is looked at; -1: none. */
  point: number;
}

/** More colours than this are not told apart: an axis with more values is a ramp. */
export const COLOURS = 8;

export function usual(points: Points): Chosen {
  const { study, axes } = points;
  const everything = Array.from({ length: points.count }, (_, p) => p);
  const vary = varying(points, everything);
  const many = (a: number) => axes[a]!.values.length;
  // The longest axis of numbers goes from left to right.
  const numeric = vary.filter((a) => axes[a]!.unit !== null).sort((a, b) => many(b) - many(a));
  const x = numeric[0] ?? vary[0] ?? 0;
  const others = besides(points, everything, [x]);
  const shown = study.figures.flatMap((figure, i) => (figure.shown ? [i] : []));
  const y = shown[0] ?? 0;
  const few = others.filter((a) => many(a) <= COLOURS).sort((a, b) => many(b) - many(a));
  const colour = few[0] ?? others[0] ?? -1;
  const rest = besides(points, everything, [x, colour]).filter((a) => few.includes(a));
  // A front is of what is wanted both ways: best of a figure of which more, and one of which less is better.
  const opposite = (of: number[]) => of.find((f) => f !== y && study.figures[f]!.more === !(study.figures[y]?.more ?? true));
  const all = study.figures.map((_, f) => f);
  const across = opposite(shown) ?? shown.find((f) => f !== y) ?? opposite(all) ?? all.find((f) => f !== y) ?? y;
  const more = (f: number) => study.figures[f]?.more ?? true;
  return {
    kind: "lines", x, up: others[0] ?? vary.find((a) => a !== x) ?? x, y, across, xMore: more(across), yMore: more(y), colour, beside: rest[0] ?? -1,
    logX: null, logY: null, kept: new Map(), table: shown, sort: { by: "point", down: false }, point: -1,
  };
}

const NAMES = { x: "axes", up: "axes", y: "figures", across: "figures", colour: "axes", beside: "axes" } as const;

/** As it stands in the address: names, and only what is not usual. */
export function toHash(points: Points, chosen: Chosen, base: Chosen): string {
  const words = new URLSearchParams();
  const { study } = points;
  if (chosen.kind !== base.kind) words.set("view", chosen.kind);
  for (const [key, of] of Object.entries(NAMES) as [keyof typeof NAMES, "axes" | "figures"][]) {
    if (chosen[key] !== base[key]) words.set(key, study[of][chosen[key]]?.name ?? "");
  }
  for (const key of ["xMore", "yMore", "logX", "logY"] as const) if (chosen[key] !== base[key]) words.set(key, String(chosen[key]));
  for (const [axis, values] of chosen.kept) words.set(`keep.${study.axes[axis]!.name}`, [...values].sort((a, b) => a - b).join("."));
  if (chosen.table.join() !== base.table.join()) words.set("table", chosen.table.map((f) => study.figures[f]!.name).join(","));
  if (chosen.sort.by !== "point" || chosen.sort.down) words.set("sort", (chosen.sort.down ? "-" : "") + chosen.sort.by);
  if (chosen.point >= 0) words.set("point", String(points.numbers[chosen.point]));
  return words.toString();
}

/** Reads it back; what is not known is left as usual. */
export function fromHash(points: Points, hash: string, base: Chosen): Chosen {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const { study } = points;
  const chosen: Chosen = { ...base };
  const kind = words.get("view");
  if (kind === "lines" || kind === "map" || kind === "front") chosen.kind = kind;
  for (const [key, of] of Object.entries(NAMES) as [keyof typeof NAMES, "axes" | "figures"][]) {
    const name = words.get(key);
    if (name === null) continue;
    const found = study[of].findIndex((one) => one.name === name);
    if (found >= 0 || (name === "" && (key === "colour" || key === "beside"))) chosen[key] = found;
  }
  for (const key of ["xMore", "yMore"] as const) if (words.has(key)) chosen[key] = words.get(key) === "true";
  for (const key of ["logX", "logY"] as const) if (words.has(key)) chosen[key] = words.get(key) === "null" ? null : words.get(key) === "true";
  const kept = new Map<number, ReadonlySet<number>>();
  study.axes.forEach(({ name }, axis) => {
    const values = words.get(`keep.${name}`);
    if (values === null) return;
    const places = values.split(".").map(Number).filter((v) => Number.isInteger(v) && v >= 0 && v < points.axes[axis]!.values.length);
    kept.set(axis, new Set(places));
  });
  chosen.kept = kept;
  const table = words.get("table");
  if (table !== null) chosen.table = table.split(",").map((name) => study.figures.findIndex((one) => one.name === name)).filter((f) => f >= 0);
  const sort = words.get("sort");
  if (sort) chosen.sort = { by: sort.replace(/^-/, ""), down: sort.startsWith("-") };
  const point = words.get("point");
  if (point !== null) chosen.point = points.numbers.indexOf(Number(point));
  return chosen;
}
