/** Everything countable that can run out: tags, credits, buffers. The fullest come first. */
import { useMemo, useState } from "preact/hooks";
import { binsIn } from "./derive";
import { digits, percent } from "./format";
import type { Resource } from "./result";
import { Empty, Section } from "./section";
import { TimeChart, type Line } from "./timechart";
import { shownRange, type View } from "./view";

const FIRST = 6;

export function Resources({ view }: { view: View }) {
  const { result, filter } = view;
  const [all, setAll] = useState(false);
  const sorted = useMemo(() => {
    const shown = result.series.resources.filter((r) => filter.link === null || r.link === filter.link);
    return shown.map((r) => ({ r, use: meanUse(view, r) })).sort((a, b) => b.use - a.use);
  }, [result, filter]);
  const visible = all ? sorted : sorted.slice(0, FIRST);
  return (
    <Section id="resources" title="Resources over time" hint="Strong line: mean in use; thin line: most in use; dotted: all there is. The fullest first.">
      {sorted.length === 0 || result.series.bins === 0 ? (
        <Empty>{filter.link === null ? "The run recorded no resources over time." : "Nothing countable was recorded on the chosen link."}</Empty>
      ) : (
        <div class="small-multiples">{visible.map(({ r, use }) => <Small key={r.name} view={view} resource={r} use={use} />)}</div>
      )}
      {sorted.length > FIRST && <button type="button" class="more" onClick={() => setAll(!all)}>{all ? "Show the fullest only" : `Show all ${sorted.length}`}</button>}
    </Section>
  );
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
