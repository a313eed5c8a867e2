/** Everything countable that can run out: tags, credits, buffers. The fullest come first. Before it the transactions under way. */
import { useMemo, useState } from "preact/hooks";
import { binsIn } from "./derive";
import { digits, percent } from "./format";
import { flowColour, flowDashed } from "./palette";
import type { Resource } from "./result";
import { Empty, Section } from "./section";
import { Swatch } from "./swatch";
import { TimeChart, type Line } from "./timechart";
import { shownFlows, shownRange, type View } from "./view";

const FIRST = 6;
/** More lines than this cannot be told apart. */
const MOST_LINES = 12;
/** Of so many flows the most is drawn, too. */
const FEW_LINES = 4;

const KINDS: Record<string, string> = { tags: "Tags", credits: "Credits", buffer: "Queues", replay: "Replay buffers" };

export function Resources({ view }: { view: View }) {
  const { result, filter } = view;
  const [all, setAll] = useState(false);
  const [wanted, setWanted] = useState<string | null>(null);
  const here = useMemo(() => result.series.resources.filter((r) => filter.link === null || r.link === filter.link), [result, filter.link]);
  const kinds = Object.keys(KINDS).filter((kind) => here.some((r) => r.kind === kind));
  const kind = wanted !== null && kinds.includes(wanted) ? wanted : null;
  const sorted = useMemo(
    () => here.filter((r) => kind === null || r.kind === kind).map((r) => ({ r, use: meanUse(view, r) })).sort((a, b) => b.use - a.use),
    [here, kind, filter],
  );
  const visible = all ? sorted : sorted.slice(0, FIRST);
  const choice = (which: string | null, text: string) => <button type="button" role="radio" aria-checked={kind === which} onClick={() => setWanted(which)}>{text}</button>;
  const aside = kinds.length > 1 && <div class="picker" role="radiogroup" aria-label="Kind of resource">{choice(null, "All")}{kinds.map((k) => choice(k, KINDS[k]!))}</div>;
  return (
    <Section id="resources" title="Resources over time" aside={aside}
      hint="Bold line: mean in use; thin line: maximum in use; dotted line: capacity. The fullest resource comes first. A request that waits for its completion holds a tag.">
      {kind === null && <UnderWayChart view={view} />}
      {sorted.length === 0 || result.series.bins === 0 ? (
        <Empty>{filter.link === null ? "The run recorded no resources over time." : "Nothing countable was recorded on the chosen link."}</Empty>
      ) : (
        <div class="small-multiples">{visible.map(({ r, use }) => <Small key={r.name} view={view} resource={r} use={use} />)}</div>
      )}
      {sorted.length > FIRST && <button type="button" class="more" onClick={() => setAll(!all)}>{all ? "Show the fullest only" : `Show all ${sorted.length}`}</button>}
    </Section>
  );
}

/** Requests that their owners wait for: of each flow the mean, of few also the most. */
function UnderWayChart({ view }: { view: View }) {
  const { result } = view;
  const using = useMemo(() => shownFlows(view), [result, view.filter.link]);
  const flows = useMemo(() => mostUnderWay(result, using).slice(0, MOST_LINES).sort((a, b) => a - b), [result, using]);
  const lines = useMemo(() => {
    const of = (flow: number) => result.series.flows.find((f) => f.flow === flow)!;
    const name = (flow: number) => result.flows[flow]!.name;
    const means = flows.map((i): Line => ({ name: name(i), colour: flowColour(i), dashed: flowDashed(i), values: of(i).outstanding_mean ?? [] }));
    const most = flows.map((i): Line => ({ name: `most of ${name(i)}`, colour: flowColour(i), dashed: flowDashed(i), thin: true, values: of(i).outstanding_max ?? [] }));
    return flows.length > FEW_LINES ? means : [...means, ...most];
  }, [result, flows]);
  if (flows.length === 0 || result.series.bins === 0) return null;
  return (
    <figure class="under-way">
      <figcaption>Transactions under way, by flow<small>{flows.length > FEW_LINES ? "mean" : "bold: mean, thin: maximum"}</small></figcaption>
      <TimeChart view={view} label="Transactions under way over time, by flow" lines={lines} height={180} format={digits} />
      <ul class="legend">{flows.map((i) => <li key={i}><Swatch flow={i} />{result.flows[i]!.name}</li>)}</ul>
      <p class="note">From the request of the device or program to its end.{using.length > flows.length && ` The ${MOST_LINES} flows with most of ${using.length}.`}</p>
    </figure>
  );
}

/** Flows whose transactions under way were kept, those with most first. */
function mostUnderWay(result: View["result"], among: readonly number[]): number[] {
  const sums = new Map(result.series.flows.flatMap((f) => (f.outstanding_mean ? [[f.flow, f.outstanding_mean.reduce((a, b) => a + b, 0)] as const] : [])));
  return among.filter((flow) => sums.has(flow)).sort((a, b) => sums.get(b)! - sums.get(a)!);
}

/** Mean part in use in the chosen range; without a capacity, of the largest value seen. */
function meanUse(view: View, r: Resource): number {
  const bins = binsIn(view.result.series, shownRange(view));
  const weight = bins.reduce((sum, b) => sum + b.weight, 0);
  const mean = weight ? bins.reduce((sum, b) => sum + (r.mean[b.bin] ?? 0) * b.weight, 0) / weight : 0;
  return r.capacity ? mean / r.capacity : -1 / (1 + mean);
}

/** The place first, then what is counted there: "TLPs queued, nic → sw0", "tags of nic". */
function parted(name: string): { place: string; what: string } {
  const [, what, place] = /^(.+), (.+)$/.exec(name) ?? /^(.+) of (.+)$/.exec(name) ?? [];
  return what && place ? { place, what } : { place: name, what: "" };
}

const COLOURS: Record<string, string> = {
  tags: "var(--cause-tag-wait)", credits: "var(--cause-credit-wait)", buffer: "var(--cause-queueing)", replay: "var(--cause-replay-buffer-wait)", memory: "var(--cause-completer)",
};

function Small({ view, resource: r, use }: { view: View; resource: Resource; use: number }) {
  const colour = COLOURS[r.kind] ?? "var(--cause-other)";
  const lines = useMemo(
    (): Line[] => [{ name: "mean", colour, values: r.mean, filled: true }, { name: "most", colour, values: r.max, thin: true }],
    [r],
  );
  const { place, what } = parted(r.name);
  return (
    <figure>
      <figcaption><span><b>{place}</b>{what}</span><small>{r.capacity ? `${percent(use)} of ${digits(r.capacity)} ${r.unit}` : r.unit}</small></figcaption>
      <TimeChart view={view} label={`${r.name}, ${r.unit} in use over time`} lines={lines} limit={r.capacity} height={132} format={digits} />
    </figure>
  );
}
