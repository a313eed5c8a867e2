/** Numbers as people read them: three significant digits, the unit that fits, a thin space between. */

const THIN = "\u202f";

/** Three significant digits without an exponent, and without trailing zeros after the point. */
export function digits(x: number, significant = 3): string {
  if (!Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(x)));
  const decimals = Math.min(20, Math.max(0, significant - 1 - magnitude));
  const text = x.toFixed(decimals);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

export function scaled(x: number, units: [number, string][], significant = 3): string {
  const [scale, unit] = units.find(([s]) => Math.abs(x) >= s) ?? units[units.length - 1]!;
  return digits(x / scale, significant) + THIN + unit;
}

const TIMES: [number, string][] = [[1e15, "s"], [1e12, "ms"], [1e9, "µs"], [1e6, "ns"], [1e3, "ps"], [1, "fs"]];

/** A duration in femtoseconds. */
export function time(fs: number, significant = 3): string {
  return fs === 0 ? "0" + THIN + "ns" : scaled(fs, TIMES, significant);
}
/** A sentence of the verdict, in the forms of the page: µs, and one transaction in the singular. */
export const spoken = (sentence: string): string => sentence.replace(/(?<=\d )us\b/g, "µs").replace(/(?<![\d.,])1 transactions\b/g, "1 transaction").replace(/(?<=\d) (?=%)/g, "\u00a0");

/** A duration in nanoseconds. */
export const ns = (value: number, significant = 3): string => time(value * 1e6, significant);

/** The unit in which a span of this many femtoseconds is best read, and its size. */
export function timeUnit(fs: number): { scale: number; name: string } {
  const [scale, name] = TIMES.find(([s]) => fs >= 2 * s) ?? TIMES[TIMES.length - 1]!;
  return { scale, name };
}

/** An instant of the run, with the digits that tell it from others `span` apart. */
export function instant(fs: number, span: number): string {
  const { scale, name } = timeUnit(Math.max(fs, 1));
  const decimals = Math.max(0, Math.min(9, Math.ceil(Math.log10(scale / Math.max(span, 1))) + 2));
  return (fs / scale).toFixed(decimals) + THIN + name;
}

export const rate = (bps: number): string =>
  scaled(bps, [[1e12, "Tb/s"], [1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"], [1, "b/s"]], 4);

export const bytes = (n: number, significant = 3): string =>
  scaled(n, [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]], significant);

/** A whole number, thousands apart. */
export const count = (n: number): string => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, THIN);

/** A fraction as a percentage; what is small but there never reads as 0. */
export function percent(x: number): string {
  if (x > 0 && x < 0.0001) return "<0.01" + THIN + "%";
  const p = x * 100;
  return (p === 0 ? "0" : p < 1 ? p.toFixed(2) : p < 99.95 ? p.toFixed(1) : p.toFixed(p > 99.995 ? 0 : 2)) + THIN + "%";
}

/** `1 flow`, `2 flows`. */
export const plural = (n: number, one: string, many = one + "s"): string => `${count(n)} ${n === 1 ? one : many}`;

/** A length for a style attribute. */
export const px = (n: number): string => `${n}px`;
