import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { App } from "./app";
import { readResult } from "./result";

const root = document.getElementById("page")!;
try {
  const result = readResult(document.getElementById("tlplab-result")?.textContent ?? "");
  document.title = `${result.title} · tlplab`;
  root.textContent = "";
  render(<App result={result} />, root);
} catch (error) {
  root.textContent = "";
  render(<main class="broken"><h1>No result to show</h1><p>{(error as Error).message}</p></main>, root);
}
