/**
 * One colour per meaning, everywhere on the page. The values live in `style.css` and, of causes, in `causes.css` as custom properties, for
 * light and dark; here are their names. Of causes, cool colours are work that must be done, warm ones are waiting, wine and grey are repairs; violet to cyan is the work of
 * a parallel bus.
 */
import { CAUSES, type Errors, type Utilization } from "./result";

/** A document of a later version may have a cause that this page has no colour for. */
export const causeColour = (name: string): string =>
  (CAUSES as string[]).includes(name) ? `var(--cause-${name.replaceAll(" ", "-")})` : "var(--cause-other)";

export const FLOW_COLOURS = 8;

/** Flows beyond the eighth repeat the colours, dashed in charts and hatched elsewhere. */
export const flowColour = (flow: number): string => `var(--flow-${flow % FLOW_COLOURS})`;
export const flowDashed = (flow: number): boolean => flow % (2 * FLOW_COLOURS) >= FLOW_COLOURS;

export type Part = keyof Utilization;
export const PARTS: Part[] = ["payload", "overhead", "dllp", "ordered_sets", "replay", "idle"];
export const BUSY: Exclude<Part, "idle">[] = ["payload", "overhead", "dllp", "ordered_sets", "replay"];
export const PART_NAMES: Record<Part, string> = {
  payload: "TLP payload", overhead: "TLP overhead", dllp: "DLLPs", ordered_sets: "ordered sets", replay: "replay", idle: "idle",
};
export const partColour = (part: Part): string => `var(--part-${part.replace("_", "-")})`;

/** How transactions end that do not end well. */
export const ENDINGS: Record<keyof Errors, string> = {
  ur: "unsupported", ca: "aborted", timeout: "timed out", poisoned: "poisoned", lost: "lost", malformed: "malformed",
};

/** The value behind `var(--x)`, for canvases, which know no custom properties. */
export function resolve(colour: string): string {
  const name = /^var\((--[\w-]+)\)$/.exec(colour)?.[1];
  return name ? getComputedStyle(document.documentElement).getPropertyValue(name).trim() : colour;
}
