/** The answer first: the sentence, its evidence, what would limit next, and the figures of each flow. */
import { useState } from "preact/hooks";
import { flowBytes, flowRate, latencyOf } from "./derive";
import { bytes, count, digits, ns, percent, plural, rate, spoken, time } from "./format";
import { ENDINGS, flowColour } from "./palette";
import type { Flow } from "./result";
import { Swatch } from "./swatch";
import { shownFlows, type View } from "./view";

/** Kinds whose utilisation is the time that transactions or ports wait. */
const WAITED_FOR = ["credits", "tags", "replay"];

export function Headline({ view }: { view: View }) {
  const { result } = view;
  const { limit, next } = result.verdict;
  const sentence = spoken(result.verdict.sentence);
  return (
    <header class="headline" aria-labelledby="verdict">
      <p class="eyebrow"><b>tlplab</b><span>{result.title}</span><span>{time(result.end_fs - result.start_fs)} of simulated time</span></p>
      <div class="answer">
        <div>
          <h1 id="verdict"><Sentence view={view} text={sentence} /></h1>
          {limit.evidence.length > 0 && <ul class="evidence">{limit.evidence.map((e) => <li key={e}>{spoken(e)}</li>)}</ul>}
        </div>
        <aside class="gauges">
          {/* A latency, and the pace of software, are not full to some part. */}
          {limit.kind !== "none" && limit.kind !== "latency" && (
            <Gauge label="Limits now" value={limit.utilization} figure={percent(limit.utilization)} text={`${limit.resource}, ${WAITED_FOR.includes(limit.kind) ? "of the time waited for" : "in use"}`} tone="hot" />
          )}
          {next && <Gauge label={`Would limit next: ${next.resource}`} value={1 / (1 + next.headroom)} figure={next.headroom < 1 ? `+${digits(next.headroom * 100)}\u202f%` : `×${(1 + next.headroom).toFixed(1)}`} text={spoken(next.text || `${next.resource} has this headroom`)} tone="cool" />}
        </aside>
      </div>
      <FlowTable view={view} />
    </header>
  );
}

/** The sentence, with the limiting link as a button that filters by it. */
function Sentence({ view, text }: { view: View; text: string }) {
  const { resource, links } = view.result.verdict.limit;
  const link = links?.[0] ?? null;
  const name = resource.replace(/^link\s+/, "");
  const at = text.toLowerCase().indexOf(name.toLowerCase()); // a sentence may begin with it
  if (link === null || at < 0) return <>{text}</>;
  return (
    <>
      {text.slice(0, at)}
      <button type="button" class="inline" aria-pressed={view.filter.link === link} onClick={() => view.chooseLink(link)} title="Show only the flows and packets of this link">{text.slice(at, at + name.length)}</button>
      {text.slice(at + name.length)}
    </>
  );
}

function Gauge(p: { label: string; value: number; figure: string; text: string; tone: string }) {
  return (
    <div class={`gauge ${p.tone}`}>
      <h3>{p.label}</h3>
      <strong>{p.figure}</strong>
      <div class="bar" aria-hidden="true"><i style={{ width: `${Math.min(1, Math.max(0, p.value)) * 100}%` }} /></div>
      <p>{p.text}</p>
    </div>
  );
}

function errors(f: Flow): string {
  const named = (Object.keys(ENDINGS) as (keyof Flow["errors"])[]).filter((how) => f.errors[how] > 0);
  return named.map((how) => `${count(f.errors[how])} ${ENDINGS[how]}`).join(", ") || "none";
}

/** With more flows than this, the fastest come first and the rest on request. */
const FIRST = 8;

function FlowTable({ view }: { view: View }) {
  const { result, filter } = view;
  const [all, setAll] = useState(false);
  const using = shownFlows(view);
  const many = using.length > FIRST;
  const fastest = many ? [...using].sort((a, b) => flowRate(result, b, filter.range) - flowRate(result, a, filter.range)) : using;
  const shown = all ? fastest : fastest.slice(0, FIRST);
  const most = Math.max(1, ...shown.map((i) => flowRate(result, i, filter.range)));
  const hidden = result.flows.length - using.length;
  return (
    <div class="flows">
      <table class="cards">
        <caption class="sr">Key figures of each flow{filter.range ? ", in the chosen time range" : ""}</caption>
        <thead>
          <tr><th>Flow</th><th>Payload</th><th>p50</th><th>p99</th><th>Largest</th><th>{filter.range ? "Moved in range" : "Moved"}</th><th>Errors</th></tr>
        </thead>
        <tbody>
          {shown.map((i) => {
            const f = result.flows[i]!;
            const bps = flowRate(result, i, filter.range);
            const { stats, samples } = latencyOf(result, i, filter);
            const about = samples !== null && stats ? "≈ " : "";
            return (
              <tr key={i}>
                <th scope="row"><div class="who"><Swatch flow={i} /><span>{f.name}<small>{f.op} → {f.target}</small></span></div></th>
                <td data-label="Payload" class="rate"><b>{rate(bps)}</b><i class="meter" style={{ width: `${(bps / most) * 100}%`, background: flowColour(i) }} /></td>
                <td data-label="p50">{stats ? about + ns(stats.p50) : "–"}</td>
                <td data-label="p99">{stats ? about + ns(stats.p99) : "–"}</td>
                <td data-label="Largest">{stats ? about + ns(stats.max) : "–"}</td>
                <td data-label="Moved">{bytes(flowBytes(result, i, filter.range))}{filter.range ? "" : <small>{plural(f.transactions, "transaction")}</small>}</td>
                <td data-label="Errors" class={errors(f) === "none" ? "quiet" : "warn"}>{errors(f)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {many && <button type="button" class="more" onClick={() => setAll(!all)}>{all ? `Show the fastest ${FIRST} only` : `Show all ${using.length} flows`}</button>}
      {hidden > 0 && <p class="note">{plural(hidden, "flow does", "flows do")} not use the chosen link and {hidden === 1 ? "is" : "are"} hidden.</p>}
      {(filter.link !== null || filter.range) && <p class="note">The sentence above is about the whole run. Figures marked ≈ come from the sampled transactions{filter.range ? " under way in the chosen range" : " that crossed the chosen link"}.</p>}
    </div>
  );
}
