/** Payload of each flow over time, and beside it what the wire of one link carried. */
import { useMemo } from "preact/hooks";
import { busiest, flowRate } from "./derive";
import { rate, percent } from "./format";
import { BUSY, flowColour, flowDashed, PART_NAMES, partColour } from "./palette";
import { Empty, Section } from "./section";
import { Swatch } from "./swatch";
import { TimeChart, type Line } from "./timechart";
import { shownFlows, type View } from "./view";

/** More lines than this cannot be told apart. */
const MOST_LINES = 12;

export function Throughput({ view }: { view: View }) {
  const { result, filter } = view;
  const { series } = result;
  const using = useMemo(() => shownFlows(view), [result, filter.link]);
  const flows = useMemo(() => {
    const rates = new Map(using.map((i) => [i, flowRate(result, i, null)]));
    return [...using].sort((a, b) => rates.get(b)! - rates.get(a)!).slice(0, MOST_LINES).sort((a, b) => a - b);
  }, [result, using]);
  const lines = useMemo(
    () => flows.map((i): Line => {
      const bytes = series.flows.find((f) => f.flow === i)?.bytes ?? [];
      return {
        name: result.flows[i]!.name, colour: flowColour(i), dashed: flowDashed(i), filled: flows.length === 1,
        values: Array.from({ length: series.bins }, (_, b) => ((bytes[b] ?? 0) * 8e15) / series.bin_fs),
      };
    }),
    [result, flows],
  );
  return (
    <Section id="throughput" title="Throughput over time" hint="Drag across any chart to choose a time range.">
      {series.bins === 0 ? <Empty>The run recorded no bins over time, so there is nothing to draw here.</Empty> : (
        <div class="two">
          <figure>
            <figcaption>Payload by flow</figcaption>
            <TimeChart view={view} label="Payload throughput of each flow over time" lines={lines} height={290} format={rate} />
            <ul class="legend">{flows.map((i) => <li key={i}><Swatch flow={i} />{result.flows[i]!.name}</li>)}</ul>
            {using.length > flows.length && <p class="note">The {MOST_LINES} fastest of {using.length} flows.</p>}
          </figure>
          <Wire view={view} />
        </div>
      )}
    </Section>
  );
}

/** The chosen link; without a choice the one that limits the run, else the busiest. */
function Wire({ view }: { view: View }) {
  const { result, filter } = view;
  const link = filter.link ?? result.verdict.limit.links?.[0] ?? busiest(result);
  const charts = useMemo(
    () => (link === null ? [] : [0, 1].map((direction): Line[] => {
      const data = result.series.directions.find((d) => d.link === link && d.direction === direction);
      return BUSY.map((p) => ({ name: PART_NAMES[p], colour: partColour(p), values: data?.[p] ?? [] }));
    })),
    [result, link],
  );
  if (link === null) return <Empty>The result has no links.</Empty>;
  const l = result.links[link]!;
  return (
    <figure>
      <figcaption>
        On the wire of{" "}
        <select aria-label="Link whose wire is shown" value={link} onChange={(e) => Number(e.currentTarget.value) !== filter.link && view.chooseLink(Number(e.currentTarget.value))}>
          {result.links.map((x, i) => <option key={i} value={i}>{x.lower} ⇄ {x.upper}</option>)}
        </select>
      </figcaption>
      {charts.map((lines, d) => (
        <div key={d} class="wire">
          <h4>{l.directions[d]!.from} → {l.directions[d]!.to}</h4>
          <TimeChart view={view} label={`How ${l.directions[d]!.from} to ${l.directions[d]!.to} spent its time`} lines={lines} stacked top={1} height={138} format={percent} axis={(v) => `${Math.round(v * 100)}\u202f%`} />
        </div>
      ))}
    </figure>
  );
}
