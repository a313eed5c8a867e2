import { flowColour, flowDashed } from "./palette";

/** The mark of a flow: its colour, hatched where colours repeat. */
export function Swatch({ flow }: { flow: number }) {
  return <i class={flowDashed(flow) ? "swatch hatched" : "swatch"} style={{ "--colour": flowColour(flow) }} aria-hidden="true" />;
}
