import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "../style.css";
import "./study.css";
import { App } from "./app";
import { readStudy } from "./document";

const root = document.getElementById("page")!;
try {
  const study = readStudy(document.getElementById("tlplab-result")?.textContent ?? "");
  document.title = `${study.title} · tlplab`;
  root.textContent = "";
  render(<App study={study} />, root);
} catch (error) {
  root.textContent = "";
  render(<main class="broken"><h1>No study to show</h1><p>{(error as Error).message}</p></main>, root);
}
