/** One picture: the frame and its scales by uPlot, the marks by us; hovering tells a point, a click or Enter chooses it. */
import uPlot from "uplot";
import { useLayoutEffect, useRef } from "preact/hooks";
import { px } from "../format";
import { useDark, useWidth } from "../hooks";
import { resolve } from "../palette";
import { hideTip, showTip } from "../tip";
import { DASHES, shareOf, type Cell, type Panel, type Range, type Scale } from "./picture";
import type { Points } from "./points";
import { css, inkOn, painted, ramp } from "./ramp";
import { PointTip } from "./point";
import { apart, linearTicks, logTicks, setting, written } from "./units";

interface Props {
  points: Points;
  panel: Panel;
  label: string;
  height: number;
  /** How many values the colouring axis has. */
  many: number;
  range: Range | null;
  /** Figures that the tooltip tells. */
  told: number[];
  unit: string;
  chosen: number;
  onChoose: (point: number) => void;
}

/** So near has the pointer to be, in pixels. */
const NEAR = 28;
/** More points than this in one line stand too close for marks. */
const MARKED = 40;
/** Of so many lines the first ones are wider. */
const FEW = 12;
/** Names of values need so many pixels. */
const LEAST = 16;
const FONT = "11px system-ui, sans-serif";

/** A place that can be pointed at, in pixels of the page. */
interface Spot {
  x: number;
  y: number;
  points: number[];
}

export function Plot(props: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const chart = useRef<uPlot | null>(null);
  const spots = useRef<Spot[] | null>(null);
  const at = useRef(-1);
  const latest = useRef(props);
  latest.current = props;
  const dark = useDark();
  const { panel, height, many, range } = props;

  // uPlot knows its scales only after it was made.
  const placed = (u: uPlot): Spot[] => (spots.current ??= spotsOf(u, latest.current));

  useLayoutEffect(() => {
    if (!box.current || width === 0) return;
    const u = frame(box.current, width, latest);
    chart.current = u;
    spots.current = null;
    at.current = -1;
    const find = (e: MouseEvent) => nearest(u, placed(u), e, latest.current.panel);
    const move = (e: PointerEvent) => {
      const found = find(e);
      if (found !== at.current) {
        at.current = found;
        u.redraw(false);
      }
      tell(u, placed(u), found, latest.current);
    };
    const leave = (e: PointerEvent) => {
      if (e.pointerType !== "mouse") return;
      at.current = -1;
      hideTip();
      u.redraw(false);
    };
    const click = (e: MouseEvent) => {
      const found = placed(u)[find(e)];
      if (found) latest.current.onChoose(found.points[0]!);
    };
    u.over.addEventListener("pointermove", move);
    u.over.addEventListener("pointerdown", move);
    u.over.addEventListener("pointerleave", leave);
    u.over.addEventListener("click", click);
    u.hooks.draw = [(u) => drawMarks(u, latest.current, at.current < 0 ? null : placed(u)[at.current]!)];
    u.redraw(false);
    return () => {
      if (chart.current === u) chart.current = null;
      u.destroy();
    };
  }, [width, dark, panel, height, many, range]);

  useLayoutEffect(() => chart.current?.redraw(false), [props.chosen]);

  const keys = (e: KeyboardEvent) => {
    const u = chart.current;
    if (!u) return;
    const all = placed(u);
    const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (e.key === "Enter" && at.current >= 0) return props.onChoose(all[at.current]!.points[0]!);
    if (step === 0) return;
    e.preventDefault();
    at.current = Math.max(0, Math.min(all.length - 1, at.current + step));
    u.redraw(false);
    tell(u, all, at.current, props);
  };
  return (
    <div class="chart" ref={box} style={{ minHeight: px(height) }} tabIndex={0} role="group"
      aria-label={`${props.label}. Arrow keys go from point to point, Enter chooses one.`} onKeyDown={keys}
      onBlur={() => { at.current = -1; hideTip(); chart.current?.redraw(false); }} />
  );
}

/** The frame. uPlot draws no series: where the scales are is all that it is asked. */
function frame(box: HTMLElement, width: number, latest: { current: Props }): uPlot {
  const { points, panel: { x, y }, height } = latest.current;
  const ink = resolve("var(--ink-3)");
  const grid = { stroke: resolve("var(--line)"), width: 1 };
  const scale = (s: Scale): uPlot.Scale => ({ time: false, auto: false, range: limits(s), distr: s.kind === "numbers" && s.log ? 3 : 1 });
  const names = (s: Scale) => (s.kind === "values" ? s.shown.map((i) => setting(points.axes[s.axis]!.values[i]!, points.axes[s.axis]!.unit)) : []);
  const side = sideWidth(y, names(y), width);
  const room = width - side - 22;
  const ticks = (s: Scale, length: number, space: number): number[] => {
    if (s.kind === "values") {
      // Names stand beside each other, or turned; where not even that has room, some are left out.
      const every = Math.ceil((s.shown.length * LEAST) / length);
      return s.shown.flatMap((_, i) => (i % every === 0 ? [i] : []));
    }
    const most = Math.max(2, Math.floor(length / space));
    if (!s.at) return s.log ? logTicks(s.low, s.high, most, s.unit) : linearTicks(s.low, s.high, most, s.unit);
    // The values of an axis are its marks, as long as they have room; else round ones.
    const place = (v: number) => ((s.log ? Math.log(v / s.low) / Math.log(s.high / s.low) : (v - s.low) / (s.high - s.low)) * length);
    if (s.at.length <= 12) return apart(s.at, place, space);
    return s.log ? logTicks(s.low, s.high, most, s.unit) : linearTicks(s.low, s.high, most, s.unit);
  };
  const labels = (s: Scale, at: number[]) => (s.kind === "values" ? at.map((i) => names(s)[i] ?? "") : at.map((v) => (v === 0 ? "0" : written(v, s.unit))));
  const widest = Math.max(...labels(x, ticks(x, room, 58)).map((t) => t.length)) * 6.2 + 10;
  const across = x.kind === "values" ? [] : ticks(x, room, Math.max(44, widest));
  // Names that have no room beside each other are turned.
  const turned = x.kind === "values" && widest * x.shown.length > room;
  return new uPlot(
    {
      width, height, legend: { show: false }, padding: [10, 22, 0, 0],
      cursor: { show: false, drag: { x: false, y: false } },
      scales: { x: scale(x), y: scale(y) },
      axes: [
        {
          stroke: ink, font: FONT, grid: { show: x.kind === "numbers", ...grid }, ticks: { ...grid, size: 4 }, ...(turned ? { rotate: -50 } : {}),
          size: turned ? Math.min(110, widest * 0.8 + 14) : 30, splits: () => (x.kind === "values" ? ticks(x, room, 0) : across), values: (_, at) => labels(x, at), filter: (_, at) => at,
        },
        {
          stroke: ink, font: FONT, grid: { show: y.kind === "numbers", ...grid }, ticks: { show: false }, size: side,
          splits: () => ticks(y, height - 50, 34), values: (_, at) => labels(y, at), filter: (_, at) => at,
        },
      ],
      series: [{}, { show: true, stroke: "transparent", points: { show: false } }],
    },
    [limits(x), [null, null]],
    box,
  );
}

function limits(s: Scale): [number, number] {
  if (s.kind === "values") return [-0.5, s.shown.length - 0.5];
  return [s.low, s.high];
}

function sideWidth(y: Scale, names: string[], width: number): number {
  if (y.kind === "numbers") return 72;
  return Math.min(width * 0.3, Math.max(...names.map((n) => n.length)) * 6.4 + 16);
}

/** Where marks are, to be pointed at, from left to right. */
function spotsOf(u: uPlot, { panel }: Props): Spot[] {
  const at = (x: number, y: number, points: number[]): Spot => ({ x: u.valToPos(x, "x"), y: u.valToPos(y, "y"), points });
  const spots = [
    ...panel.lines.flatMap((line) => line.points.map((p, i) => at(line.x[i]!, line.y[i]!, [p]))),
    ...panel.dots.map((dot) => at(dot.x, dot.y, [dot.point])),
    ...panel.cells.map((cell) => at(cell.column, cell.row, cell.points)),
  ];
  return spots.sort((a, b) => a.x - b.x || b.y - a.y);
}

function nearest(u: uPlot, spots: Spot[], e: MouseEvent, panel: Panel): number {
  const box = u.over.getBoundingClientRect();
  const [x, y] = [e.clientX - box.left, e.clientY - box.top];
  if (panel.cells.length > 0) {
    const [column, row] = [Math.round(u.posToVal(x, "x")), Math.round(u.posToVal(y, "y"))];
    return spots.findIndex((s) => Math.round(u.posToVal(s.x, "x")) === column && Math.round(u.posToVal(s.y, "y")) === row);
  }
  let [best, least] = [-1, NEAR * NEAR];
  spots.forEach((s, i) => {
    const far = (s.x - x) ** 2 + (s.y - y) ** 2;
    if (far < least) [best, least] = [i, far];
  });
  return best;
}

function tell(u: uPlot, spots: Spot[], at: number, props: Props): void {
  const spot = spots[at];
  if (!spot) return hideTip();
  const box = u.over.getBoundingClientRect();
  // Others may lie under it.
  const here = spots.filter((s) => s !== spot && Math.abs(s.x - spot.x) < 1.5 && Math.abs(s.y - spot.y) < 1.5).flatMap((s) => s.points);
  showTip(<PointTip points={props.points} of={[...spot.points, ...here]} told={props.told} />, box.left + spot.x, box.top + spot.y);
}

function drawMarks(u: uPlot, props: Props, hovered: Spot | null): void {
  const { ctx } = u;
  const { panel } = props;
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left - 4, u.bbox.top - 4, u.bbox.width + 8, u.bbox.height + 8);
  ctx.clip();
  if (panel.cells.length > 0) drawCells(u, props);
  drawLines(u, props);
  drawDots(u, props);
  const marked = [...(hovered ? [hovered] : []), ...spotsOfPoint(u, props, props.chosen)];
  for (const spot of panel.cells.length > 0 ? [] : marked) {
    circle(u, u.bbox.left + spot.x * devicePixelRatio, u.bbox.top + spot.y * devicePixelRatio, 6.5);
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.strokeStyle = resolve("var(--ink)");
    ctx.stroke();
  }
  ctx.restore();
}

const spotsOfPoint = (u: uPlot, props: Props, point: number): Spot[] => (point < 0 ? [] : spotsOf(u, props).filter((s) => s.points.includes(point)));

function circle(u: uPlot, x: number, y: number, radius: number): void {
  u.ctx.beginPath();
  u.ctx.arc(x, y, radius * devicePixelRatio, 0, 2 * Math.PI);
}

function drawLines(u: uPlot, { panel, many }: Props): void {
  const { ctx } = u;
  const floor = panel.y.kind === "numbers" ? panel.y.low : 0;
  panel.lines.forEach((line, at) => {
    // Lines that lie on each other are seen all the same: the later are thinner.
    const late = at / panel.lines.length;
    const colour = painted(line.colour, many);
    const xs = line.x.map((v) => u.valToPos(v, "x", true));
    const ys = line.y.map((v) => u.valToPos(Math.max(v, floor), "y", true));
    if (line.half.some((h) => h > 0)) {
      ctx.beginPath();
      xs.forEach((x, i) => ctx.lineTo(x, u.valToPos(Math.max(line.y[i]! + line.half[i]!, floor), "y", true)));
      for (let i = xs.length - 1; i >= 0; i--) ctx.lineTo(xs[i]!, u.valToPos(Math.max(line.y[i]! - line.half[i]!, floor), "y", true));
      ctx.globalAlpha = 0.2;
      ctx.fillStyle = colour;
      ctx.fill();
      ctx.globalAlpha = 1;
    }
    ctx.beginPath();
    xs.forEach((x, i) => ctx.lineTo(x, ys[i]!));
    ctx.strokeStyle = colour;
    ctx.lineWidth = (panel.lines.length < 2 || panel.lines.length > FEW ? 1.75 : 3.4 - 2.2 * late) * devicePixelRatio;
    ctx.lineJoin = "round";
    ctx.setLineDash(DASHES[line.dash]!.map((d) => d * devicePixelRatio));
    ctx.stroke();
    ctx.setLineDash([]);
    if (xs.length > MARKED) return;
    ctx.fillStyle = colour;
    xs.forEach((x, i) => {
      circle(u, x, ys[i]!, panel.lines.length < 2 || panel.lines.length > FEW ? 3 : 4.4 - 2.2 * late);
      ctx.fill();
    });
  });
}

function drawDots(u: uPlot, { panel, many }: Props): void {
  if (panel.dots.length === 0) return;
  const { ctx } = u;
  const place = (dot: { x: number; y: number }): [number, number] => [u.valToPos(dot.x, "x", true), u.valToPos(dot.y, "y", true)];
  ctx.globalAlpha = panel.dots.length > 400 ? 0.35 : 0.5;
  for (const dot of panel.dots) {
    if (dot.best) continue;
    ctx.fillStyle = dot.colour < 0 ? resolve("var(--ink-3)") : painted(dot.colour, many);
    circle(u, ...place(dot), panel.dots.length > 2000 ? 2 : 3);
    ctx.fill();
  }
  ctx.globalAlpha = 1;
  const best = panel.dots.filter((dot) => dot.best).sort((a, b) => a.x - b.x || a.y - b.y);
  ctx.strokeStyle = resolve("var(--ink)");
  ctx.lineWidth = 1.25 * devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.beginPath();
  for (const dot of best) ctx.lineTo(...place(dot));
  ctx.stroke();
  ctx.setLineDash([]);
  for (const dot of best) {
    ctx.fillStyle = painted(dot.colour, many);
    circle(u, ...place(dot), 5);
    ctx.fill();
    ctx.stroke();
  }
}

function drawCells(u: uPlot, { panel, range, unit, chosen }: Props): void {
  const { ctx } = u;
  if (!range) return;
  const px = devicePixelRatio;
  const corner = (cell: Cell): [number, number, number, number] => {
    const at = (value: number, scale: string) => Math.round(u.valToPos(value, scale, true));
    const [x0, x1] = [at(cell.column - 0.5, "x"), at(cell.column + 0.5, "x")];
    const [y0, y1] = [at(cell.row + 0.5, "y"), at(cell.row - 0.5, "y")];
    return [x0, y0, x1 - x0, y1 - y0];
  };
  ctx.font = `${11 * px}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (const cell of panel.cells) {
    const [x, y, width, height] = corner(cell);
    const gap = width > 8 * px && height > 8 * px ? px : 0;
    const colour = ramp(shareOf(range, cell.value));
    ctx.fillStyle = css(colour);
    ctx.fillRect(x, y, width - gap, height - gap);
    if (cell.points.includes(chosen)) {
      ctx.strokeStyle = resolve("var(--ink)");
      ctx.lineWidth = 3 * px;
      ctx.strokeRect(x + 1, y + 1, width - 2, height - 2);
    }
    const text = written(cell.value, unit);
    if (height < 16 * px || ctx.measureText(text).width > width - 6 * px) continue;
    ctx.fillStyle = inkOn(colour);
    ctx.fillText(text, x + width / 2, y + height / 2);
  }
}
