/** Every figure of every link direction, as a table; with a link chosen, its two rows. */
import { busy, utilization } from "./derive";
import { count, percent, rate } from "./format";
import type { View } from "./view";

export function LinkTable({ view }: { view: View }) {
  const { result, filter } = view;
  const rows = result.links.flatMap((l, link) =>
    filter.link !== null && filter.link !== link ? [] : l.directions.map((d, direction) => ({ l, link, d, direction })),
  );
  if (rows.length === 0) return null;
  return (
    <details class="links" open={filter.link !== null || rows.length <= 4}>
      <summary>{filter.link === null ? `All ${result.links.length === 1 ? "figures of the link" : `${result.links.length} links in figures`}` : "The chosen link in figures"}</summary>
      <div class="scroll" tabIndex={0} role="group" aria-label="Link figures, scrolls sideways">
        <table>
          <thead>
            <tr>
              <th>Direction</th><th>Busy</th><th>Payload</th><th>TLPs</th><th>Ack</th><th>Nak</th><th>UpdateFC</th><th>Replayed</th><th>Replay timeouts</th><th>Bad LCRC</th>
              <th>Waits: credits</th><th>tags</th><th>replay buffer</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ l, link, d, direction }) => {
              const u = utilization(result, link, direction, filter.range);
              const bad = (n: number) => <td class={n > 0 ? "warn" : "quiet"}>{count(n)}</td>;
              return (
                <tr key={`${link}/${direction}`}>
                  <th scope="row"><button type="button" class="plain" aria-pressed={filter.link === link} onClick={() => view.chooseLink(link)}>{d.from} → {d.to}</button></th>
                  <td>{percent(busy(u))}</td><td>{rate(u.payload * l.raw_bps)}</td><td>{count(d.tlps)}</td><td>{count(d.dllps.ack)}</td>{bad(d.dllps.nak)}
                  <td>{count(d.dllps.update_fc)}</td>{bad(d.replayed)}{bad(d.replay_timeouts)}{bad(d.bad_lcrc)}
                  <td>{percent(d.stalls.credits)}</td><td>{percent(d.stalls.tags)}</td><td>{percent(d.stalls.replay_buffer)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {filter.range && <p class="note">“Busy” and “Payload” are of the chosen time range, the counts of the whole run.</p>}
    </details>
  );
}
