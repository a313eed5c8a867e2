/** A transaction of a bus in a ladder: unbroken between its master and its target, phase by phase. */
import { answersAtOnce, type Band } from "./ladder_layout";
import { causeColour } from "./palette";
import type { Packet } from "./result";

interface Props {
  packet: Packet;
  bands: Band[];
  /** Where its master and its target stand. */
  x0: number;
  x1: number;
  causes: string[];
}

export function BusMark({ packet: p, bands, x0, x1, causes }: Props) {
  const way = Math.sign(x1 - x0) || 1;
  const [left, width] = [Math.min(x0, x1), Math.abs(x1 - x0)];
  const data = bands.find((b) => causes[b.cause] === "data phases");
  const middle = data && (data.top + data.bottom) / 2;
  const [from, to, back] = answersAtOnce(p) ? [x1, x0, -way] : [x0, x1, way];
  const last = bands[bands.length - 1]!;
  return (
    <>
      {bands.map((b, k) => <rect key={k} class="band" x={left} width={width} y={b.top} height={Math.max(0.5, b.bottom - b.top)} fill={causeColour(causes[b.cause] ?? "")} />)}
      <path class="frame" d={`M${left},${bands[0]!.top}h${width}V${last.bottom}h${-width}z`} />
      <line class="shaft" x1={x0} y1={bands[0]!.top} x2={x1} y2={bands[0]!.top} />
      <path class="head" d={`M${x1},${bands[0]!.top}l${-8 * way},-4.5v9z`} />
      {p.outcome === "data" && middle !== undefined && (
        <>
          <line class="shaft" x1={from} y1={middle} x2={to} y2={middle} />
          <path class="head" d={`M${to},${middle}l${-8 * back},-4.5v9z`} />
        </>
      )}
    </>
  );
}
