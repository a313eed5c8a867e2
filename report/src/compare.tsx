/** The ladders of some flows beside each other, or one above the other where there is no room: what one does while the other still waits. */
import { useState } from "preact/hooks";
import { BusMark } from "./bus_mark";
import { axisStep, type Panel } from "./compare_layout";
import { time } from "./format";
import { useWidth } from "./hooks";
import { bandsOf } from "./ladder_layout";
import { causeColour, flowColour } from "./palette";
import type { Packet } from "./result";
import { Swatch } from "./swatch";
import { TipRows, tip } from "./tip";
import type { View } from "./view";

/** As many are shown at first: more are too narrow beside each other. */
const FIRST = 3;
/** Height of the longest transaction. */
const LONGEST = 460;
const HEADER = 30;
const FOOT = 16;
const AXIS = 58;
const CAUSES = 116;
const HEAD_CHARACTER_PX = 7;
/** Lower than this, a part has no room for its name. */
const NAMED = 12;

export function Compare({ view, flows }: { view: View; flows: Panel[] }) {
  const [off, setOff] = useState<ReadonlySet<number>>(new Set(flows.slice(FIRST).map((p) => p.transaction.flow)));
  const shown = flows.filter((p) => !off.has(p.transaction.flow));
  const toggle = (flow: number) => setOff((s) => new Set(s.has(flow) ? [...s].filter((f) => f !== flow) : [...s, flow]));
  const longest = Math.max(1, ...shown.map(({ transaction: t }) => t.end_fs - t.start_fs));
  return (
    <>
      <div class="picker compared" role="group" aria-label="Flows to compare">
        {flows.map(({ transaction: { flow } }) => (
          <button key={flow} type="button" aria-pressed={!off.has(flow)} onClick={() => toggle(flow)}><Swatch flow={flow} />{view.result.flows[flow]!.name}</button>
        ))}
      </div>
      <div class="compare">{shown.map((p) => <One key={p.transaction.id} view={view} panel={p} scale={LONGEST / longest} />)}</div>
    </>
  );
}

function One({ view, panel: { transaction: t, packets, columns }, scale }: { view: View; panel: Panel; scale: number }) {
  const [box, width] = useWidth<HTMLDivElement>();
  const { result } = view;
  const y = (fs: number) => (fs - t.start_fs) * scale;
  const height = y(t.end_fs);
  const left = AXIS + CAUSES + 34;
  const gap = columns.length > 1 ? (width - left - 34) / (columns.length - 1) : 0;
  const x = (name: string) => left + Math.max(0, columns.indexOf(name)) * gap;
  const fits = Math.max(5, Math.floor(Math.min(gap, 120) / HEAD_CHARACTER_PX));
  const step = axisStep(scale, 44);
  const latency = t.end_fs - t.start_fs;
  return (
    <figure>
      <figcaption><span><Swatch flow={t.flow} /><b>{result.flows[t.flow]!.name}</b></span><strong>{time(latency, 5)}</strong><small>{t.text}</small></figcaption>
      <div ref={box}>
        {width > 0 && (
          <svg class="lane" width={width} height={HEADER + height + FOOT} role="img" aria-label={`${t.text}, ${time(latency, 5)}: ${packets.map((p) => p.kind).join(", ")}`}>
            {columns.map((name) => <text key={name} class="column" x={x(name)} y="14" text-anchor="middle">{name.length <= fits ? name : `${name.slice(0, fits - 1)}…`}</text>)}
            <g transform={`translate(0,${HEADER})`}>
              {Array.from({ length: Math.floor(latency / step) + 1 }, (_, k) => <text key={k} class="tick" x={AXIS - 8} y={k * step * scale + 4}>{time(k * step)}</text>)}
              {t.intervals.map((i, k) => {
                const cause = result.causes[i.cause] ?? "?";
                const high = i.duration_fs * scale;
                const places = <><b>{cause}</b><p>{i.place}{i.behind && `, behind ${i.behind}`}</p><TipRows rows={[{ name: "lasts", value: time(i.duration_fs, 5) }]} /></>;
                return (
                  <g key={k} {...tip(() => places)}>
                    <rect class="cause" x={AXIS} width="10" y={y(i.start_fs)} height={Math.max(0.5, high - 1)} fill={causeColour(cause)} />
                    {high >= NAMED && <text class="named" x={AXIS + 15} y={y(i.start_fs) + high / 2 + 4}>{cause}</text>}
                  </g>
                );
              })}
              {columns.map((name) => <line key={name} class="life" x1={x(name)} x2={x(name)} y1={-HEADER + 20} y2={height + FOOT} />)}
              {packets.map((p) => <Mark key={p.id} view={view} packet={p} x={x} y={y} />)}
            </g>
          </svg>
        )}
      </div>
    </figure>
  );
}

function Mark({ view, packet: p, x, y }: { view: View; packet: Packet; x: (name: string) => number; y: (fs: number) => number }) {
  const { causes, links } = view.result;
  const d = links[p.link]!.directions[p.direction]!;
  const [x0, x1] = [x(d.from), x(d.to)];
  const way = Math.sign(x1 - x0) || 1;
  const bands = bandsOf(p, y);
  const [first, end, arrive] = [y(p.start_fs), y(p.end_fs), y(p.arrive_fs)];
  const arriving = arrive - (end - first);
  const colour = { "--colour": p.flow === null ? "var(--ink-3)" : flowColour(p.flow) };
  const middle = (x0 + x1) / 2;
  return (
    <g class="rung" style={colour} {...tip(() => <><b>{p.text || p.kind}</b><p>{d.from} → {d.to}</p><TipRows rows={bands.map((b) => ({ name: causes[b.cause] ?? "?", colour: causeColour(causes[b.cause] ?? ""), value: time(b.fs, 5) }))} /></>)}>
      {bands.length > 0 ? (
        <>
          <BusMark packet={p} bands={bands} x0={x0} x1={x1} causes={causes} />
          <text class="label" x={middle} y={first - 8} text-anchor="middle">{p.kind}{p.outcome && p.outcome !== "data" && `, ${p.outcome}`}</text>
        </>
      ) : (
        <>
          <polygon points={`${x0},${first} ${x1},${arriving} ${x1},${arrive} ${x0},${end}`} />
          <line class="shaft" x1={x0} y1={first} x2={x1} y2={arriving} />
          <line class="shaft" x1={x0} y1={end} x2={x1} y2={arrive} />
          <path class="head" d={`M${x1},${arrive}l${-8 * way},-5v9z`} />
          <text class="label" x={middle} y={(first + arrive) / 2 + 4} text-anchor="middle">{p.kind}</text>
        </>
      )}
    </g>
  );
}
