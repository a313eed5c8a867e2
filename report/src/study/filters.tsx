/** Which points are left: by the values of their axes. */
import { useState } from "preact/hooks";
import type { AxisOfPoints, Points } from "./points";
import type { Chosen } from "./state";
import { setting } from "./units";

interface Props {
  points: Points;
  vary: number[];
  chosen: Chosen;
  change: (to: Partial<Chosen>) => void;
}

/** Axes with more values than this have a range. */
const BUTTONS = 12;

export function Filters({ points, vary, chosen, change }: Props) {
  const keep = (axis: number, values: Iterable<number> | null) => {
    const kept = new Map(chosen.kept);
    const set = values && new Set(values);
    if (set && set.size < points.axes[axis]!.values.length) kept.set(axis, set);
    else kept.delete(axis);
    change({ kept });
  };
  return (
    <div class="filters" role="group" aria-label="Points by the values of their axes">
      {vary.map((a) => {
        const axis = points.axes[a]!;
        const kept = chosen.kept.get(a) ?? null;
        return (
          <fieldset key={a}>
            <legend>{axis.name}</legend>
            {axis.values.length <= BUTTONS ? <Buttons axis={axis} kept={kept} keep={(to) => keep(a, to)} /> : <RangeOf axis={axis} kept={kept} keep={(to) => keep(a, to)} />}
          </fieldset>
        );
      })}
    </div>
  );
}

interface OfAxis {
  axis: AxisOfPoints;
  kept: ReadonlySet<number> | null;
  keep: (values: Iterable<number> | null) => void;
}

/** The first click on a value leaves this one alone; further ones add and take away. */
function Buttons({ axis, kept, keep }: OfAxis) {
  const toggle = (v: number) => {
    if (!kept) return keep([v]);
    const left = kept.has(v) ? [...kept].filter((k) => k !== v) : [...kept, v];
    keep(left.length > 0 ? left : null);
  };
  return (
    <div class="values">
      {axis.values.map((value, v) => (
        <button key={v} type="button" aria-pressed={kept?.has(v) ?? false} class={kept && !kept.has(v) ? "out" : ""} onClick={() => toggle(v)}>{setting(value, axis.unit)}</button>
      ))}
    </div>
  );
}

function RangeOf({ axis, kept, keep }: OfAxis) {
  const last = axis.values.length - 1;
  const [low, high] = kept ? [Math.min(...kept), Math.max(...kept)] : [0, last];
  const [live, setLive] = useState<[number, number] | null>(null);
  const [from, to] = live ?? [low, high];
  const moved = (which: 0 | 1, v: number): [number, number] => (which === 0 ? [Math.min(v, to), to] : [from, Math.max(v, from)]);
  const end = (which: 0 | 1, v: number) => {
    const [a, b] = moved(which, v);
    setLive(null);
    keep(Array.from({ length: b - a + 1 }, (_, i) => a + i));
  };
  const slide = (which: 0 | 1) => (
    <input type="range" min="0" max={last} value={which === 0 ? from : to} aria-label={`${which === 0 ? "From" : "To"}, ${axis.name}`}
      aria-valuetext={setting(axis.values[which === 0 ? from : to]!, axis.unit)}
      onInput={(e) => setLive(moved(which, e.currentTarget.valueAsNumber))} onChange={(e) => end(which, e.currentTarget.valueAsNumber)} />
  );
  return <div class="range"><output>{setting(axis.values[from]!, axis.unit)} – {setting(axis.values[to]!, axis.unit)}</output>{slide(0)}{slide(1)}</div>;
}
