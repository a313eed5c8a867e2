/**
 * The page, from the answer to the detail: what limits the run; where on the topology; when; why so late; what was scarce; transaction
 * by transaction and packet by packet; and what exactly was run. One filter, a link and a time range, reaches all of it.
 */
import { useMemo, useState } from "preact/hooks";
import { About } from "./about";
import { ConfigSpaceView } from "./config_space";
import { Errors } from "./errors";
import { Faults } from "./faults";
import { FilterBar } from "./filterbar";
import { flowLinks, NO_FILTER, type Filter } from "./filter";
import { Gains } from "./gains";
import { Headline } from "./headline";
import { Ladder } from "./ladder";
import { LatencyView } from "./latency";
import { Outages } from "./outages";
import { Resources } from "./resources";
import type { Result } from "./result";
import { Throughput } from "./throughput";
import { Tip } from "./tip";
import { Topology } from "./topology";
import { TransactionTable } from "./transaction_table";
import { listed } from "./transactions";
import type { Chosen, View } from "./view";

export function App({ result }: { result: Result }) {
  const [filter, setFilter] = useState<Filter>(NO_FILTER);
  const [chosen, choose] = useState<Chosen | null>(null);
  const [sought, setSought] = useState("");
  const links = useMemo(() => flowLinks(result), [result]);
  const transactions = useMemo(() => listed(result), [result]);
  const view: View = {
    result, filter, flowLinks: links, transactions, chosen, choose, sought, seek: setSought,
    chooseLink: (link) => setFilter((f) => ({ ...f, link: f.link === link ? null : link })),
    chooseRange: (range) => setFilter((f) => ({ ...f, range })),
    clearFilter: () => setFilter(NO_FILTER),
  };
  return (
    <>
      <a class="skip" href="#topology">Skip to the topology</a>
      <main>
        <Headline view={view} />
        <Gains result={result} />
        <FilterBar view={view} />
        <Topology view={view} />
        <Throughput view={view} />
        <LatencyView view={view} />
        <Resources view={view} />
        <Errors result={result} />
        <Faults result={result} />
        <Outages result={result} />
        <ConfigSpaceView view={view} />
        <TransactionTable view={view} />
        <Ladder view={view} />
        <About result={result} />
      </main>
      <Tip />
    </>
  );
}
