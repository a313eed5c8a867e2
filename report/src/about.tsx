/** What exactly was run, so that anyone can run it again. */
import { useState } from "preact/hooks";
import { instant } from "./format";
import type { Result } from "./result";
import { Section } from "./section";

export function About({ result }: { result: Result }) {
  const [copied, setCopied] = useState(false);
  const copy = () => void navigator.clipboard.writeText(result.experiment).then(() => setCopied(true), () => setCopied(false));
  const facts: [string, string][] = [
    ["tlplab", result.version], ["seed", String(result.seed)], ["trace hash", result.trace_hash],
    ["ended at", instant(result.end_fs, result.end_fs / 1000)], ["because of", result.stop_text ?? result.stop_reason], ["result schema", result.schema],
  ];
  return (
    <Section id="experiment" title="The experiment" hint="The same text and seed give the same trace hash on every machine.">
      <dl class="facts">{facts.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
      <div class="code">
        <button type="button" onClick={copy}>{copied ? "Copied" : "Copy"}</button>
        <pre tabIndex={0} aria-label="Experiment, TOML"><code>{result.experiment}</code></pre>
      </div>
    </Section>
  );
}
