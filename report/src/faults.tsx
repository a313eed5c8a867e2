/** Faults of TLPs, DLLPs, flits and bits, and how many each has hit. */
import type { Result } from "./result";
import { Section } from "./section";

export function Faults({ result }: { result: Result }) {
  const { faults = [] } = result;
  if (faults.length === 0) return null;
  return (
    <Section id="faults" title="Faults" hint="Faults that the experiment injects on its links, and the number of units each has hit.">
      <div class="tables">
        <table class="cards">
          <caption class="sr">Faults</caption>
          <thead><tr><th>Below</th><th>Direction</th><th>Damage</th><th>Of</th><th>From</th><th>Struck</th></tr></thead>
          <tbody>
            {faults.map((f, i) => (
              <tr key={i}>
                <th scope="row">{f.link}</th>
                <td data-label="Direction">{f.direction}</td>
                <td data-label="Damage">{f.damage}</td>
                <td data-label="Of">{f.of ?? "all"}</td>
                <td data-label="From">{f.first}</td>
                <td data-label="Struck">{f.struck}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
