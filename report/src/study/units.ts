/** Values of axes and figures in words, and the marks of a scale. */
import { bytes, digits, ns, rate, scaled } from "../format";
import type { Value } from "./document";
import type { Mean } from "./points";

/** A figure in the unit that fits: four significant digits, as `tlplab sweep` shows it. */
export function written(value: number, unit: string): string {
  switch (unit) {
    case "b/s": return rate(value);
    case "ns": return ns(value, 4);
    case "B": return Number.isInteger(value) && value % 1024 !== 0 && Math.abs(value) < 16384 ? `${digits(value, 5)}\u202fB` : bytes(value, 4);
    case "1/s": return scaled(value, [[1e9, "G/s"], [1e6, "M/s"], [1e3, "k/s"], [1, "/s"]], 4);
    case "1": return plain(value);
    default: return `${plain(value)}\u202f${unit}`;
  }
}

const plain = (value: number): string => (Number.isInteger(value) && Math.abs(value) < 1e9 ? String(value) : digits(value, 4));

/** A value of an axis. */
export const setting = (value: Value, unit: string | null): string => (typeof value === "number" ? written(value, unit ?? "1") : String(value));

/** A spread below this share of the mean is none. */
const LEAST_SPREAD = 0.0005;

export function writtenMean(mean: Mean | null, unit: string): string {
  if (!mean) return "–";
  const { half, mean: value } = mean;
  if (half === null || half <= LEAST_SPREAD * Math.abs(value)) return written(value, unit);
  return value === 0 ? `0 ±${written(half, unit)}` : `${written(value, unit)} ±${digits((100 * half) / Math.abs(value), 2)}\u202f%`;
}

/** The smallest and the largest; infinite of none. */
export function ends(values: readonly number[]): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const v of values) [low, high] = [Math.min(low, v), Math.max(high, v)];
  return [low, high];
}

/** Marks of a linear scale: round in decimal, or of sizes multiples of a power of two; at most so many. */
export function linearTicks(low: number, high: number, most: number, unit: string): number[] {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(1, most);
  let step: number;
  if (unit === "B" && raw >= 1) step = 2 ** Math.ceil(Math.log2(raw));
  else {
    const power = 10 ** Math.floor(Math.log10(raw));
    step = power * ([1, 2, 5, 10].find((m) => m * power >= raw * (1 - 1e-9)) ?? 10);
  }
  const ticks: number[] = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

/** Marks of a logarithmic scale: powers of two for sizes and counts, else of ten, with 2 and 5 between where there is room. */
export function logTicks(low: number, high: number, most: number, unit: string): number[] {
  const binary = unit === "B";
  const base = binary ? 2 : 10;
  const [a, b] = [Math.floor(Math.log(low) / Math.log(base) + 1e-9), Math.ceil(Math.log(high) / Math.log(base) - 1e-9)];
  const inside = (v: number) => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9);
  const powers = (step: number) => Array.from({ length: Math.floor((b - a) / step) + 1 }, (_, i) => base ** (a + i * step));
  if (!binary) {
    for (const parts of [[1, 2, 5], [1, 3]]) {
      const ticks = powers(1).flatMap((p) => parts.map((m) => Number((m * p).toPrecision(12)))).filter(inside);
      if (ticks.length <= most && ticks.length > 1) return ticks;
    }
  }
  for (let step = 1; ; step++) {
    const ticks = powers(step).filter(inside);
    if (ticks.length <= Math.max(2, most)) return ticks.length > 0 ? ticks : [low, high];
  }
}

/** Those of the given places that stand far enough apart: for scales whose marks are the values themselves. */
export function apart(values: readonly number[], place: (v: number) => number, gap: number): number[] {
  const kept: number[] = [];
  for (const v of values) if (kept.length === 0 || place(v) - place(kept[kept.length - 1]!) >= gap) kept.push(v);
  return kept;
}
