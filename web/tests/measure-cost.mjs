// What open pages cost a recorder: its processor time with and without them, in turn, and packets.
// WIRESPOOL_URL=... WIRESPOOL_TOKEN=... VOLUME=... node tests/measure-cost.mjs PID [ROUNDS] [TABS]
// PID is the recorder's; its indexer and what it starts are counted, too. SECONDS (20) each turn.
import { chromium } from "@playwright/test";
import { readdirSync, readFileSync } from "node:fs";

const [pid, rounds = "5", tabs = "10"] = process.argv.slice(2);
const url = process.env.WIRESPOOL_URL ?? "http://127.0.0.1:8420";
const token = process.env.WIRESPOOL_TOKEN ?? "";
const volume = process.env.VOLUME ?? "";
const seconds = Number(process.env.SECONDS ?? 20);
const VIEWS = ["sessions?t=15m&every=10", "talkers?t=15m&every=10", "storage", "overview"];

const text = (path) => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
};
const children = (id) => text(`/proc/${id}/task/${id}/children`).split(" ").filter(Boolean);
const family = (id) => [id, ...children(id).flatMap(family)];

/** Nanoseconds on a processor, of all threads. */
function cpuNs() {
  return family(pid).reduce((sum, one) => {
    const threads = readdirSync(`/proc/${one}/task`);
    const of = (thread) => Number(text(`/proc/${one}/task/${thread}/schedstat`).split(" ")[0]);
    return sum + threads.reduce((all, thread) => all + of(thread), 0);
  }, 0);
}

async function account() {
  const answer = await fetch(`${url}/api/v1/volumes`, {
    headers: { Authorization: `Bearer ${token}` },
  });
  const { volumes } = await answer.json();
  const { offered = 0, kernel_drops = 0, writer_drops = 0, interface_drops = 0 } =
    volumes.find(({ name }) => name === volume) ?? volumes[0];
  return { offered, lost: kernel_drops + writer_drops + (interface_drops ?? 0) };
}

async function turn() {
  const before = cpuNs();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  return (cpuNs() - before) / (seconds * 1e9);
}

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

/** The overview and so many tabs, each of them in a window of its own: hidden tabs do not ask. */
async function opened() {
  const contexts = [];
  for (let at = 0; at <= Number(tabs); at += 1) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${url}/#token=${token}`);
    await page.getByRole("navigation", { name: "Views" }).waitFor();
    const view = at === 0 ? "overview" : VIEWS[at % VIEWS.length];
    const mark = view.includes("?") ? "&" : "?";
    await page.goto(`${url}/#/${view}${mark}v=${volume}`);
    contexts.push(context);
  }
  return contexts;
}

const first = await account();
const [without, beside] = [[], []];
for (let round = 0; round < Number(rounds); round += 1) {
  without.push(await turn());
  const contexts = await opened();
  await new Promise((resolve) => setTimeout(resolve, 3000));
  beside.push(await turn());
  await Promise.all(contexts.map((context) => context.close()));
}
const last = await account();
await browser.close();

const percent = (share) => `${(100 * share).toFixed(2)} %`;
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const spread = (values) =>
  `${percent(median(values))} of a core, ${percent(Math.min(...values))} ` +
  `to ${percent(Math.max(...values))}, n = ${values.length}`;
console.log(`recorder alone: ${spread(without)}`);
console.log(`with the overview and ${tabs} tabs: ${spread(beside)}`);
console.log(`difference of a pair: ${spread(beside.map((one, at) => one - without[at]))}`);
console.log(`packets meanwhile: ${last.offered - first.offered} offered, ` +
  `${last.lost - first.lost} lost`);
