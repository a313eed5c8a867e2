/** What went wrong where, and what software heard of it: errors by the port that detected them, and the log of the root ports. */
import { count, instant } from "./format";
import type { Detected, Reported, Result } from "./result";
import { Section } from "./section";

export function Errors({ result }: { result: Result }) {
  const { errors = [], reported = [] } = result;
  if (errors.length === 0) return null;
  return (
    <Section id="errors" title="Errors" hint="Errors that each port detected, including the warm-up, and the messages that reported them to the root complex.">
      <div class="tables">
        <DetectedTable errors={errors} span={result.end_fs} />
        {reported.length > 0 ? <ReportedTable reported={reported} span={result.end_fs} /> : <p class="note">No root port received a message about them.</p>}
      </div>
    </Section>
  );
}

function DetectedTable({ errors, span }: { errors: Detected[]; span: number }) {
  return (
    <table class="cards">
      <caption class="sr">Errors by the port that detected them</caption>
      <thead><tr><th>Error</th><th>At the port</th><th>Times</th><th>First</th><th>Reported as</th><th>Messages</th></tr></thead>
      <tbody>
        {errors.map((e, i) => (
          <tr key={i}>
            <th scope="row">{e.name}</th>
            <td data-label="At the port">{e.port}</td>
            <td data-label="Times">{count(e.count)}</td>
            <td data-label="First">{instant(e.first_fs, span)}</td>
            <td data-label="Reported as" class={e.message ? "" : "quiet"}>{e.message ?? "not reported"}</td>
            <td data-label="Messages">{count(e.messages ?? 0)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function ReportedTable({ reported, span }: { reported: Reported[]; span: number }) {
  return (
    <table class="cards">
      <caption>Error messages at the root ports</caption>
      <thead><tr><th>Message</th><th>From</th><th>Root port</th><th>Times</th><th>First</th><th>Interrupts</th></tr></thead>
      <tbody>
        {reported.map((r, i) => (
          <tr key={i}>
            <th scope="row">{r.message}</th>
            <td data-label="From">{r.source}</td>
            <td data-label="Root port">{r.port}</td>
            <td data-label="Times">{count(r.count)}</td>
            <td data-label="First">{instant(r.first_fs, span)}</td>
            <td data-label="Interrupts">{count(r.interrupts)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
