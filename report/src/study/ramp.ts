/** Colours of values: few are told apart by colours of their own, many and figures are on a ramp. */
import { flowColour, resolve } from "../palette";
import { COLOURS } from "./state";

/** Viridis, from little to much; its ends stay apart from white and black paper. */
const STOPS = [[70, 50, 127], [61, 78, 138], [49, 104, 142], [38, 130, 142], [31, 158, 137], [74, 193, 109], [143, 215, 68], [216, 226, 40]] as const;

export function ramp(share: number): [number, number, number] {
  const at = Math.max(0, Math.min(1, Number.isFinite(share) ? share : 0)) * (STOPS.length - 1);
  const [a, b] = [STOPS[Math.floor(at)]!, STOPS[Math.min(STOPS.length - 1, Math.floor(at) + 1)]!];
  return [0, 1, 2].map((i) => Math.round(a[i]! + (b[i]! - a[i]!) * (at % 1))) as [number, number, number];
}

export const css = ([r, g, b]: readonly [number, number, number]): string => `rgb(${r} ${g} ${b})`;

/** What is read on a colour of the ramp. */
export const inkOn = ([r, g, b]: readonly [number, number, number]): string => (0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#191c20" : "#ffffff");

/** As a background, from left to right. */
export const GRADIENT = `linear-gradient(90deg, ${STOPS.map(css).join(", ")})`;

/** The colour of a value of an axis that has `many` of them: a custom property, or a place on the ramp. */
export function valueColour(place: number, many: number): string {
  if (place < 0) return "var(--accent)";
  return many <= COLOURS ? flowColour(place) : css(ramp(place / (many - 1)));
}

/** The same for canvases. */
export const painted = (place: number, many: number): string => resolve(valueColour(place, many));
