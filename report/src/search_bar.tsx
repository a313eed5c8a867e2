/** The field that searches the ladder, and what came of it. */
import { instant, plural } from "./format";
import type { Query } from "./search";
import type { Ladder, Result } from "./result";

interface Props {
  result: Result;
  ladder: Ladder;
  text: string;
  query: Query | null;
  /** Packets that match: in the whole ladder, and of these as many as are shown. */
  hits: number;
  shown: number;
  /** Which of the shown ones is chosen, from 1; null if another packet is. */
  at: number | null;
  onText: (text: string) => void;
  onStep: (step: 1 | -1) => void;
  /** Takes filters away that hide hits. */
  onShowAll: () => void;
  /** How many transactions of the table match, and what shows them. */
  listed: number;
  onListed: () => void;
}

export function SearchBar(p: Props) {
  const step = (way: 1 | -1, label: string, text: string) => (
    <button type="button" disabled={p.shown === 0} aria-label={label} title={label} onClick={() => p.onStep(way)}>{text}</button>
  );
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.key === "Enter") p.onStep(e.shiftKey ? -1 : 1);
    else if (e.key === "Escape") p.onText("");
    else return;
    e.preventDefault();
  };
  return (
    <div class="search" role="search">
      <div class="toolbar">
        <input type="search" aria-label="Search the ladder" placeholder="Search: 0x1000, tag 0x1f, MRd, 04:00.0, flow" spellcheck={false} autocomplete="off" value={p.text}
          onInput={(e) => p.onText(e.currentTarget.value)} onKeyDown={onKeyDown} />
        <span class="group">{step(-1, "Previous hit", "↑")}{step(1, "Next hit", "↓ Hit")}</span>
        <span class="hits" aria-live="polite">{p.query && !p.query.problem && counted(p)}</span>
      </div>
      {p.query && <Word {...p} query={p.query} />}
    </div>
  );
}

const counted = ({ at, shown }: Props): string => (at === null ? plural(shown, "hit") : `hit ${at} of ${shown}`);

/** A ladder is a part of a run: what is not in it may still have happened. */
function Word({ result, ladder, query, hits, shown, onShowAll, listed, onListed }: Props & { query: Query }) {
  if (query.problem) return <p class="note warn">{query.problem}</p>;
  const span = ladder.to_fs - ladder.from_fs;
  const window = `the ${plural(ladder.packets.length, "packet")} of the ladder, ${instant(ladder.from_fs, span)} to ${instant(ladder.to_fs, span)} of a run until ${instant(result.end_fs, span)}`;
  const hidden = hits - shown;
  return (
    <p class="note">
      {hits === 0 ? `None of ${window}, has ${query.read}. This page has no packets outside it.` : `Searched: ${window}.`}
      {hidden > 0 && <> {shown === 0 ? `All ${plural(hits, "hit")}` : plural(hidden, "more hit")} {hidden === 1 && shown > 0 ? "is" : "are"} hidden by the filter. <button type="button" class="plain" onClick={onShowAll}>Show {shown === 0 ? "them" : "all"}</button></>}
      {listed > 0 && <> {plural(listed, "transaction")} in the table {listed === 1 ? "matches" : "match"}. <button type="button" class="plain" onClick={onListed}>Show {listed === 1 ? "it" : "them"}</button></>}
    </p>
  );
}
