/** Stays in sight: what is chosen, how to undo it, and the whole run in one strip on which a time range is dragged. */
import { useEffect, useRef, useState } from "preact/hooks";
import { onDrag } from "./drag";
import { clampRange, type Range } from "./filter";
import { instant, time, timeUnit } from "./format";
import { shownRange, type View } from "./view";

export function FilterBar({ view }: { view: View }) {
  const { result, filter } = view;
  const link = filter.link === null ? null : result.links[filter.link]!;
  const span = filter.range ? filter.range[1] - filter.range[0] : 0;
  return (
    <div class="filterbar" role="region" aria-label="Filter">
      <div class="chips" aria-live="polite">
        {!link && !filter.range && <span class="chip none">Whole run<small>choose a link, or drag over time</small></span>}
        {link && <Chip clear="Clear the link filter" onClear={() => view.chooseLink(null)}>{link.bus ? "on the bus" : "link"} <b>{link.lower} ⇄ {link.upper}</b></Chip>}
        {filter.range && (
          <Chip clear="Clear the time filter" onClear={() => view.chooseRange(null)}>
            <b>{instant(filter.range[0], span)} – {instant(filter.range[1], span)}</b> <small>{time(span)}</small>
          </Chip>
        )}
      </div>
      <Overview view={view} />
      <RangeFields view={view} />
    </div>
  );
}

function Chip(p: { clear: string; onClear: () => void; children: preact.ComponentChildren }) {
  return <span class="chip"><span>{p.children}</span><button type="button" aria-label={p.clear} title={p.clear} onClick={p.onClear}>×</button></span>;
}

/** Total payload over the whole run, the chosen range, and where the ladder's window lies. */
function Overview({ view }: { view: View }) {
  const { result, filter } = view;
  const box = useRef<HTMLDivElement>(null);
  const [live, setLive] = useState<[number, number] | null>(null);
  const whole = Math.max(1, result.end_fs - result.start_fs);
  const latest = useRef(view);
  latest.current = view;
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    return onDrag(el, {
      move: (a, b) => setLive([a / el.clientWidth, b / el.clientWidth]),
      end: (range) => {
        setLive(null);
        if (range) {
          const at = (px: number) => result.start_fs + (px / el.clientWidth) * whole;
          latest.current.chooseRange(clampRange(result, at(range[0]), at(range[1])));
        }
      },
    });
  }, [result, whole]);
  const part = (r: Range): [number, number] => [(r[0] - result.start_fs) / whole, (r[1] - result.start_fs) / whole];
  const chosen = live ?? (filter.range ? part(filter.range) : null);
  const ladder = result.ladder ? part([result.ladder.from_fs, result.ladder.to_fs]) : null;
  return (
    <div class="overview" ref={box} aria-hidden="true" title="Drag to choose a time range">
      <Spark view={view} />
      {ladder && <i class="window" style={{ left: `${ladder[0] * 100}%`, width: `max(3px, ${(ladder[1] - ladder[0]) * 100}%)` }} />}
      {chosen && (
        <>
          <i class="veil" style={{ left: "0", width: `${chosen[0] * 100}%` }} />
          <i class="veil" style={{ left: `${chosen[1] * 100}%`, right: "0" }} />
          <i class="range" style={{ left: `${chosen[0] * 100}%`, width: `${(chosen[1] - chosen[0]) * 100}%` }} />
        </>
      )}
    </div>
  );
}

function Spark({ view }: { view: View }) {
  const { series, start_fs, end_fs } = view.result;
  if (series.bins === 0) return null;
  const total = Array.from({ length: series.bins }, (_, b) => series.flows.reduce((sum, f) => sum + (f.bytes[b] ?? 0), 0));
  const top = Math.max(1, ...total);
  const width = Math.max(1, end_fs - start_fs);
  const x = (b: number) => (((series.start_fs + b * series.bin_fs - start_fs) / width) * 100).toFixed(2);
  const d = total.map((v, b) => `L${x(b)},${(30 - (v / top) * 26).toFixed(2)}L${x(b + 1)},${(30 - (v / top) * 26).toFixed(2)}`).join("");
  return <svg viewBox="0 0 100 30" preserveAspectRatio="none"><path d={`M${x(0)},30${d}L${x(series.bins)},30Z`} /></svg>;
}

/** The same choice without dragging: two numbers. */
function RangeFields({ view }: { view: View }) {
  const { result } = view;
  const unit = timeUnit(result.end_fs - result.start_fs);
  const range = shownRange(view);
  const shown = (fs: number) => Number((fs / unit.scale).toPrecision(7));
  const set = (which: 0 | 1) => (e: Event) => {
    const value = (e.currentTarget as HTMLInputElement).valueAsNumber * unit.scale;
    if (Number.isFinite(value)) view.chooseRange(clampRange(result, which === 0 ? value : range[0], which === 1 ? value : range[1]));
  };
  const field = (which: 0 | 1, label: string) => (
    <input type="number" step="any" aria-label={`${label} of the time range, ${unit.name}`} value={shown(range[which])} onChange={set(which)} />
  );
  return <div class="fields">{field(0, "Start")}<span>–</span>{field(1, "End")}<span>{unit.name}</span></div>;
}
