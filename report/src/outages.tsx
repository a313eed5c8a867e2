/** Links that went down, and when what is below them was back. */
import { instant } from "./format";
import type { Result } from "./result";
import { Section } from "./section";

export function Outages({ result }: { result: Result }) {
  const { outages = [], end_fs } = result;
  if (outages.length === 0) return null;
  const at = (fs: number | null) => (fs === null ? "never" : instant(fs, end_fs));
  return (
    <Section id="outages" title="Links that went down" hint="When software was notified, when the link was up again, and when the functions below it were configured.">
      <div class="tables">
        <table class="cards">
          <caption class="sr">Links that went down</caption>
          <thead><tr><th>Below</th><th>Down</th><th>Heard</th><th>Up</th><th>Configured</th></tr></thead>
          <tbody>
            {outages.map((o, i) => (
              <tr key={i}>
                <th scope="row">{o.link}</th>
                <td data-label="Down">{at(o.down_fs)}</td>
                <td data-label="Heard">{at(o.heard_fs)}</td>
                <td data-label="Up">{at(o.up_fs)}</td>
                <td data-label="Configured">{at(o.configured_fs)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
