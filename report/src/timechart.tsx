/** A chart over the run's time: cursors move together, a drag chooses the range that every view then shows. */
import uPlot from "uplot";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { onDrag } from "./drag";
import { clampRange } from "./filter";
import { instant, px, timeUnit } from "./format";
import { useDark, useWidth } from "./hooks";
import { resolve } from "./palette";
import { hideTip, showTip, TipRows } from "./tip";
import { shownRange, type View } from "./view";

export interface Line {
  name: string;
  colour: string;
  /** Null where nothing is known. */
  values: readonly (number | null)[];
  dashed?: boolean;
  filled?: boolean;
  thin?: boolean;
}

interface Props {
  view: View;
  label: string;
  lines: Line[];
  /** Lines stand on each other, the first at the bottom. */
  stacked?: boolean;
  /** A line across, for instance a capacity. */
  limit?: number | null;
  /** The top of the axis; found from the data if absent. */
  top?: number;
  height: number;
  format: (value: number) => string;
  /** How the axis writes its round values; as `format` if absent. */
  axis?: (value: number) => string;
}

/** The part of a chart that is being chosen, in pixels. (uPlot clears its own selection when its own dragging is off.) */
class Brush {
  a = 0;
  b = 0;
  private readonly mark = document.createElement("div");

  constructor(over: HTMLElement) {
    this.mark.className = "brush";
    over.append(this.mark);
    this.show(0, 0);
  }

  show(a: number, b: number): void {
    [this.a, this.b] = [a, b];
    this.mark.hidden = b <= a;
    this.mark.style.left = px(a);
    this.mark.style.width = px(b - a);
  }
}

/** The chart under the pointer; the others only follow its cursor. */
let active: uPlot | null = null;

export function TimeChart(props: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const chart = useRef<uPlot | null>(null);
  const brush = useRef<Brush | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const dark = useDark();
  const { view, lines, stacked, limit, top, height } = props;

  useLayoutEffect(() => {
    if (!box.current || width === 0) return;
    const u = draw(box.current, width, latest);
    chart.current = u;
    brush.current = new Brush(u.over);
    const stop = onDrag(u.over, {
      move: (a, b) => brush.current?.show(a, b),
      end: (range) => {
        brush.current?.show(0, 0);
        hideTip();
        if (range) choose(latest.current.view, u.posToVal(range[0], "x"), u.posToVal(range[1], "x"));
      },
    });
    return () => {
      stop();
      if (active === u) active = null;
      u.destroy();
    };
  }, [width, dark, lines, stacked, limit, top, height]);

  useEffect(() => {
    const [min, max] = inUnit(view);
    chart.current?.setScale("x", { min, max });
  }, [view.filter.range]);

  return (
    <div class="chart" ref={box} style={{ minHeight: px(height) }} tabIndex={0} role="group"
      aria-label={`${props.label}. Arrow keys read values, Shift with arrow keys and Enter choose a time range, Escape clears it.`}
      onKeyDown={(e) => chart.current && keys(e, chart.current, brush.current!, latest.current)} onBlur={hideTip} />
  );
}

/** The run's time is drawn in the unit that suits the whole run; labels choose their own. */
const unitOf = (view: View) => timeUnit(view.result.end_fs - view.result.start_fs).scale;
const inUnit = (view: View): [number, number] => {
  const [a, b] = shownRange(view);
  return [a / unitOf(view), b / unitOf(view)];
};

function choose(view: View, a: number, b: number): void {
  const range = clampRange(view.result, a * unitOf(view), b * unitOf(view));
  if (range) view.chooseRange(range);
}

function data(props: Props): uPlot.AlignedData {
  const { series } = props.view.result;
  const unit = unitOf(props.view);
  const x = Array.from({ length: series.bins }, (_, b) => (series.start_fs + (b + 0.5) * series.bin_fs) / unit);
  if (!props.stacked) return [x, ...props.lines.map((l) => [...l.values])];
  const sums: number[][] = [];
  for (const line of props.lines) {
    const below = sums[sums.length - 1];
    sums.push(line.values.map((v, b) => (v ?? 0) + (below?.[b] ?? 0)));
  }
  return [x, ...sums.reverse()];
}

function draw(box: HTMLElement, width: number, latest: { current: Props }): uPlot {
  const props = latest.current;
  const { view, limit } = props;
  const ink = resolve("var(--ink-3)");
  const grid = { stroke: resolve("var(--line)"), width: 1 };
  const font = "11px system-ui, sans-serif";
  const lines = props.stacked ? [...props.lines].reverse() : props.lines;
  const peak = Math.max(0, ...(data(props).slice(1) as number[][]).map((v) => v.reduce((a, b) => Math.max(a, b), 0)), limit ?? 0);
  const top = props.top ?? (peak > 0 ? peak * 1.08 : 1);
  const few = view.result.series.bins < 3;
  return new uPlot(
    {
      width, height: props.height, legend: { show: false }, padding: [8, 26, 0, 0],
      cursor: { sync: { key: "time" }, drag: { x: false, y: false, setScale: false }, y: false, points: { size: 7 } },
      scales: { x: { time: false, min: inUnit(view)[0], max: inUnit(view)[1], auto: false }, y: { range: [0, top] } },
      axes: [
        { stroke: ink, font, grid: { show: false }, ticks: { ...grid, size: 4 }, size: 30, space: 90, values: (_, vs) => axisLabels(view, vs) },
        { stroke: ink, font, grid, ticks: { show: false }, size: 66, space: 34, values: (_, vs) => vs.map(props.axis ?? props.format) },
      ],
      series: [
        {},
        ...lines.map((l): uPlot.Series => {
          const colour = resolve(l.colour);
          return {
            stroke: props.stacked ? "transparent" : colour, width: l.thin ? 1 : 1.75, points: { show: few && !props.stacked },
            ...(props.stacked ? { fill: colour } : l.filled ? { fill: colour + "22" } : {}), ...(l.dashed ? { dash: [7, 4] } : {}),
          };
        }),
      ],
      hooks: {
        setCursor: [(u) => active === u && reading(u, latest.current)],
        ready: [(u) => {
          u.over.addEventListener("pointerenter", () => (active = u));
          u.over.addEventListener("pointerleave", (e) => {
            if (e.pointerType === "mouse") [active] = [null, hideTip()];
          });
        }],
        draw: [(u) => {
          if (limit == null) return;
          const y = Math.round(u.valToPos(limit, "y", true)) + 0.5;
          u.ctx.save();
          u.ctx.strokeStyle = ink;
          u.ctx.setLineDash([2 * devicePixelRatio, 4 * devicePixelRatio]);
          u.ctx.beginPath();
          u.ctx.moveTo(u.bbox.left, y);
          u.ctx.lineTo(u.bbox.left + u.bbox.width, y);
          u.ctx.stroke();
          u.ctx.restore();
        }],
      },
    },
    data(props),
    box,
  );
}

/** Round instants, with as many decimals as tell them apart. */
function axisLabels(view: View, values: number[]): string[] {
  const { name } = timeUnit(view.result.end_fs - view.result.start_fs);
  const step = values.length > 1 ? values[1]! - values[0]! : 1;
  const decimals = Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9)));
  return values.map((v) => `${v.toFixed(decimals)}\u202f${name}`);
}

/** Shows the values at the cursor. */
function reading(u: uPlot, props: Props): void {
  const i = u.cursor.idx;
  if (i == null) return hideTip();
  const { series } = props.view.result;
  const rows = props.lines.map((l) => ({ colour: l.colour, name: l.name, value: l.values[i] == null ? "–" : props.format(l.values[i]) }));
  const box = u.over.getBoundingClientRect();
  showTip(
    <><b>{instant(series.start_fs + i * series.bin_fs, series.bin_fs)}</b><TipRows rows={props.stacked ? rows.reverse() : rows} /></>,
    box.left + (u.cursor.left ?? 0), box.top + Math.min(u.cursor.top ?? 0, box.height * 0.6),
  );
}

function keys(e: KeyboardEvent, u: uPlot, brush: Brush, props: Props): void {
  const { view } = props;
  const x = u.data[0];
  if (e.key === "Escape") return view.filter.range ? view.chooseRange(null) : undefined;
  if (e.key === "Enter" && brush.b > brush.a) {
    choose(view, u.posToVal(brush.a, "x"), u.posToVal(brush.b, "x"));
    return brush.show(0, 0);
  }
  const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
  if (step === 0 || x.length === 0) return;
  e.preventDefault();
  active = u;
  const [lo, hi] = [u.valToIdx(u.scales["x"]!.min!), u.valToIdx(u.scales["x"]!.max!)];
  const old = u.cursor.idx ?? lo;
  const next = Math.max(lo, Math.min(hi, old + step));
  const at = (i: number) => u.valToPos(x[i]!, "x");
  if (e.shiftKey) {
    const { a, b } = brush;
    const anchor = a === b ? at(old) : Math.abs(b - at(old)) < Math.abs(a - at(old)) ? a : b;
    brush.show(Math.min(anchor, at(next)), Math.max(anchor, at(next)));
  } else brush.show(0, 0);
  u.setCursor({ left: at(next), top: 12 });
}
