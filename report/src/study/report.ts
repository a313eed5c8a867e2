/** Opens the report of a point in a tab of its own: the viewer is in the page once, results are put into it. */
import type { StudyDocument } from "./document";

/** Text that was packed by gzip and written in base64. */
export async function unpack(packed: string): Promise<string> {
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

export async function pageOf({ viewer, results }: NonNullable<StudyDocument["reports"]>, number: string): Promise<string> {
  const [before, result, after] = await Promise.all([viewer[0], results[number]!, viewer[1]].map(unpack));
  return before + result!.replaceAll("<", "\\u003c") + after;
}

export async function openReport(reports: NonNullable<StudyDocument["reports"]>, number: string): Promise<void> {
  // At once, while the click counts: a window that opens later is taken for an advertisement.
  const tab = window.open("", "_blank");
  if (!tab) throw new Error("the browser does not let this page open a tab");
  tab.document.title = `point ${number}`;
  const address = URL.createObjectURL(new Blob([await pageOf(reports, number)], { type: "text/html" }));
  tab.location.replace(address);
}
