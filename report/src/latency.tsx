/** How late transactions were, and which causes their time went to, at which place and behind whom. */
import { useMemo, useState } from "preact/hooks";
import { attributionOf, axisOf, latencyOf, type Row } from "./derive";
import { linkOfPlace, matches } from "./filter";
import { count, ns, percent } from "./format";
import { causeColour, ENDINGS } from "./palette";
import type { Bar, Latency } from "./result";
import { Empty, Section } from "./section";
import { Swatch } from "./swatch";
import { TipRows, tip } from "./tip";
import { useWidth } from "./hooks";
import { nearest } from "./transactions";
import { shownFlows, type View } from "./view";

/** More flows than this are chosen from a list instead of buttons. */
const MANY = 14;

export function LatencyView({ view }: { view: View }) {
  const flows = shownFlows(view);
  const [wanted, setWanted] = useState(0);
  const flow = flows.includes(wanted) ? wanted : flows[0];
  const picker = flows.length > MANY ? (
    <select aria-label="Flow" value={flow} onChange={(e) => setWanted(Number(e.currentTarget.value))}>
      {flows.map((i) => <option key={i} value={i}>{view.result.flows[i]!.name}</option>)}
    </select>
  ) : (
    <div class="picker" role="radiogroup" aria-label="Flow">
      {flows.map((i) => (
        <button key={i} type="button" role="radio" aria-checked={i === flow} onClick={() => setWanted(i)}><Swatch flow={i} />{view.result.flows[i]!.name}</button>
      ))}
    </div>
  );
  return (
    <Section id="latency" title="Latency and its causes" hint="Each bar: the transactions of one step of latency, split by the causes of their time." aside={flows.length > 1 ? picker : undefined}>
      {flow === undefined ? <Empty>No flow uses the chosen link.</Empty> : <OneFlow view={view} flow={flow} />}
    </Section>
  );
}

function OneFlow({ view, flow }: { view: View; flow: number }) {
  const { stats, bars, samples } = latencyOf(view.result, flow, view.filter);
  const used = view.result.causes.map((_, k) => bars.some((b) => b.count > 0 && (b.causes_ns[k] ?? 0) > 0));
  if (!stats || bars.length === 0) {
    return <>
      <Empty>{samples === null ? "No transaction of this flow ended well." : "No sampled transaction of this flow is in the selection."}</Empty>
      <FailedTables view={view} flow={flow} />
    </>;
  }
  return (
    <>
    <div class="two">
      <figure>
        <Histogram view={view} bars={bars} stats={stats} />
        <ul class="legend">{view.result.causes.map((c, k) => used[k] && <li key={c}><i class="dot" style={{ background: causeColour(c) }} />{c}</li>)}</ul>
        <Percentiles view={view} flow={flow} stats={stats} />
        {samples !== null && <p class="note">From {count(samples)} sampled transactions that fall into the choice.</p>}
      </figure>
      <EndedWell view={view} flow={flow} />
    </div>
    <FailedTables view={view} flow={flow} />
    </>
  );
}

const HEIGHT = 250;
const AXIS = 26;

function Histogram({ view, bars, stats }: { view: View; bars: Bar[]; stats: Latency }) {
  const [box, width] = useWidth<HTMLDivElement>();
  const causes = view.result.causes;
  const top = Math.max(...bars.map((b) => b.count));
  const total = bars.reduce((sum, b) => sum + b.count, 0);
  const { lo, hi, log } = axisOf(bars, stats);
  const scale = (x: number) => (log ? Math.log(x) : x);
  const x = (value: number) => ((scale(Math.max(lo, Math.min(hi, value))) - scale(lo)) / (scale(hi) - scale(lo))) * width;
  const together = x(stats.p99) - x(stats.p50) < 32; // their names would overlap
  const plot = HEIGHT - AXIS;
  const y = (n: number) => (n / top) * (plot - 22);
  return (
    <div ref={box} class="histogram">
      {width > 0 && (
        <svg width={width} height={HEIGHT} role="group" aria-label={`Distribution of latency, ${ns(stats.min)} to ${ns(stats.max)}`}>
          {bars.map((bar, i) => <StackedBar key={i} bar={bar} causes={causes} x={x(bar.from_ns)} width={x(bar.to_ns) - x(bar.from_ns)} base={plot} height={Math.max(1.5, y(bar.count))} total={total} />)}
          <line class="axis" x1="0" x2={width} y1={plot + 0.5} y2={plot + 0.5} />
          {ticks(lo, hi, log, width).map((t) => (
            <g key={t} transform={`translate(${x(t)},${plot})`}><line class="axis" y2="4" /><text y="17" text-anchor={x(t) < 24 ? "start" : x(t) > width - 24 ? "end" : "middle"}>{ns(t)}</text></g>
          ))}
          {([["p50", stats.p50], ["p99", stats.p99]] as const).map(([name, value]) => (
            <g key={name} class="mark" transform={`translate(${x(value)},0)`}><line y1="14" y2={plot} /><text y="10" text-anchor={x(value) > width - 40 ? "end" : x(value) < 40 ? "start" : "middle"}>{!together ? name : name === "p99" && "p50, p99"}</text></g>
          ))}
        </svg>
      )}
    </div>
  );
}

function StackedBar(p: { bar: Bar; causes: string[]; x: number; width: number; base: number; height: number; total: number }) {
  const { bar, causes } = p;
  const sum = bar.causes_ns.reduce((a, b) => a + Math.max(0, b), 0) || 1;
  let at = p.base;
  const parts = causes.map((cause, k) => {
    const height = (Math.max(0, bar.causes_ns[k] ?? 0) / sum) * p.height;
    at -= height;
    return height > 0 && <rect key={cause} x={p.x + 0.5} width={Math.max(1, p.width - 1)} y={at} height={height} fill={causeColour(cause)} />;
  });
  const rows = causes.map((name, k) => ({ name, colour: causeColour(name), ns: bar.causes_ns[k] ?? 0 })).filter((r) => r.ns > 0).sort((a, b) => b.ns - a.ns);
  const title = `${ns(bar.from_ns)} – ${ns(bar.to_ns)}`;
  const share = percent(bar.count / p.total);
  return (
    <g class="bar" tabIndex={0} role="img" aria-label={`${title}: ${share} of transactions, mostly ${rows[0]?.name ?? "nothing"}`}
      {...tip(() => <><b>{title}</b><p>{count(bar.count)} transactions, {share}; mean time by cause:</p><TipRows rows={rows.map((r) => ({ ...r, value: ns(r.ns) }))} /></>)}>
      <rect class="hit" x={p.x} width={p.width} y="0" height={p.base} />
      {parts}
    </g>
  );
}

/** Round values on the axis, about one for every 64 pixels. */
function ticks(lo: number, hi: number, log: boolean, width: number): number[] {
  const wanted = Math.max(2, Math.floor(width / 64));
  if (!log) {
    const rough = (hi - lo) / wanted;
    const ten = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * ten).find((s) => s >= rough)!;
    return Array.from({ length: Math.floor(hi / step) - Math.ceil(lo / step) + 1 }, (_, i) => (Math.ceil(lo / step) + i) * step);
  }
  const all = [];
  for (let ten = 10 ** Math.floor(Math.log10(lo)); ten <= hi; ten *= 10) for (const m of [1, 2, 5]) if (m * ten >= lo && m * ten <= hi) all.push(m * ten);
  return all.length > wanted ? all.filter((t) => /^1/.test(t.toExponential())) : all;
}

/** Each figure leads to the transaction that is nearest to it, of those that are listed. */
function Percentiles({ view, flow, stats }: { view: View; flow: number; stats: Latency }) {
  const { transactions, filter } = view;
  const among = useMemo(() => transactions.flatMap((t, i) => (t.flow === flow && matches(t, filter) ? [i] : [])), [transactions, flow, filter]);
  const named: [string, number][] = [["min", stats.min], ["mean", stats.mean], ["p50", stats.p50], ["p90", stats.p90], ["p99", stats.p99], ["p99.9", stats.p999], ["max", stats.max]];
  const figure = (name: string, latency_ns: number) => {
    const row = nearest(transactions, among, flow, latency_ns);
    if (row === null) return ns(latency_ns);
    return <button type="button" class="plain" title={`Show the transaction nearest to the ${name}`} onClick={() => view.choose({ row, at: "table", sought: { name, latency_ns } })}>{ns(latency_ns)}</button>;
  };
  return <dl class="percentiles">{named.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{figure(k, v)}</dd></div>)}</dl>;
}

/** What became of those that did not end well, and where their time went. */
function FailedTables({ view, flow }: { view: View; flow: number }) {
  const { failures = [], name } = view.result.flows[flow]!;
  return <>{failures.map((f) => <AttributionTable key={f.ending} view={view} rows={[...f.attribution]} title={`${count(f.count)} ${f.ending === "done" ? f.ending : ENDINGS[f.ending]}, ${ns(f.mean_ns)} each: where the time of ${name} went`} />)}</>;
}

function EndedWell({ view, flow }: { view: View; flow: number }) {
  const { result, filter } = view;
  return <AttributionTable view={view} rows={attributionOf(result, result.flows[flow]!, flow, filter)} title={`Where the time of ${result.flows[flow]!.name} went`} ranged />;
}

function AttributionTable({ view, rows, title, ranged }: { view: View; rows: Row[]; title: string; ranged?: boolean }) {
  const { result, filter } = view;
  const [all, setAll] = useState(false);
  const shown = all ? rows : rows.slice(0, 12);
  const most = Math.max(1e-12, ...rows.map((r) => r.share));
  return (
    <div class="attribution">
      <h3>{title}</h3>
      {rows.length === 0 ? <Empty>Nothing is charged to {filter.link === null ? "any cause" : "the chosen link"}.</Empty> : (
        <table>
          <thead><tr><th>Cause</th><th>Place</th><th>Behind</th><th>Share</th></tr></thead>
          <tbody>
            {shown.map((r, i) => {
              const cause = result.causes[r.cause] ?? "?";
              const behind = r.behind === null ? -1 : result.flows.findIndex((f) => f.name === r.behind);
              const link = r.place === null ? null : linkOfPlace(result, r.place);
              return (
                <tr key={i}>
                  <th scope="row"><i class="dot" style={{ background: causeColour(cause) }} />{cause}</th>
                  <td>{r.place === null ? <span class="quiet">everywhere</span> : link === null ? r.place : <button type="button" class="plain" onClick={() => view.chooseLink(link)} aria-pressed={filter.link === link}>{r.place}</button>}</td>
                  <td>{r.behind === null ? <span class="quiet">{r.others ? `${r.others} other flows` : "–"}</span> : <>{behind >= 0 && <Swatch flow={behind} />}{r.behind}</>}</td>
                  <td class="share"><i class="meter" style={{ width: `${(r.share / most) * 100}%`, background: causeColour(cause) }} /><span>{percent(r.share)}</span></td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      {rows.length > 12 && <button type="button" class="more" onClick={() => setAll(!all)}>{all ? "Show the largest only" : `Show all ${rows.length}`}</button>}
      {ranged && filter.range && <p class="note">Added up over the sampled transactions under way in the range{rows.some((r) => r.place === null) && "; samples have causes, but no places and no flows in front"}.</p>}
      {ranged && filter.link !== null && rows.some((r) => r.place !== null) && <p class="note">Shares are of the flow's whole latency; only the parts charged to the chosen link are shown.</p>}
    </div>
  );
}
