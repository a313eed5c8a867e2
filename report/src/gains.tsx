/** What the run would carry with twice as much of each resource: bars from nothing to both sides, the limit first. */
import { digits, time } from "./format";
import type { Gain, Result } from "./result";
import { Section } from "./section";

export function Gains({ result }: { result: Result }) {
  const { tried, limits = [] } = result.verdict;
  if (!tried || tried.gains.length === 0) return null;
  const most = Math.max(...tried.gains.map((g) => Math.abs(g.gain)));
  const half = tried.gains.some((g) => g.gain < 0); // then nothing is in the middle
  const limiting = new Set(limits.map((l) => l.resource));
  const where = tried.until_fs === null ? "the run" : `the first ${time(tried.until_fs)} of the run`;
  return (
    <Section id="gains" title="Gain from twice as much" hint={`The additional payload with twice as much of a resource: ${tried.tried} of ${tried.candidates} resources were doubled one at a time, and ${where} was run again. Resources without effect are left out.`}>
      <div class="tables">
        <table class={half ? "cards gains both" : "cards gains"}>
          <caption class="sr">Payload with twice as much of each resource</caption>
          <thead><tr><th>Resource</th><th>Change</th><th>Carried</th></tr></thead>
          <tbody>
            {tried.gains.map((g) => (
              <tr key={g.resource} class={limiting.has(g.resource) ? "limit" : undefined}>
                <th scope="row">{g.resource}</th>
                <td data-label="Change">{g.change}</td>
                <td data-label="Carried" class="bar">
                  <b>{signed(g)}</b>
                  <span aria-hidden="true"><i class={g.gain < 0 ? "less" : "more"} style={{ width: `${(Math.abs(g.gain) / most) * (half ? 50 : 100)}%` }} /></span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function signed({ gain }: Gain): string {
  const sign = gain < 0 ? "−" : "+";
  return `${sign}${digits(Math.abs(gain) * 100)}\u202f%`;
}
