// Uses the page at speed, and reads the memory of its tab:
// WIRESPOOL_URL=... WIRESPOOL_TOKEN=... node tests/measure-use.mjs [MINUTES]
// Views, queries, groups, zooms, scrolled rows, sessions with packets and streams: an action in a
// fraction of a second, where people take several.
import { chromium } from "@playwright/test";
import { readFileSync } from "node:fs";

const minutes = Number(process.argv[2] ?? 20);
const url = process.env.WIRESPOOL_URL ?? "http://127.0.0.1:8420";
const token = process.env.WIRESPOOL_TOKEN ?? "";
const volume = process.env.VOLUME ?? "";
const v = volume === "" ? "" : `&v=${volume}`;

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
const cdp = await page.context().newCDPSession(page);
await cdp.send("Performance.enable");
const ofBrowser = await browser.newBrowserCDPSession();
await page.goto(`${url}/#token=${token}`);
await page.getByRole("navigation", { name: "Views" }).waitFor();

/** Memory that only the process of the tab has, in MiB. */
async function ownMib() {
  const { processInfo } = await ofBrowser.send("SystemInfo.getProcessInfo");
  const own = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => {
    const rollup = readFileSync(`/proc/${id}/smaps_rollup`, "utf8");
    const kib = [...rollup.matchAll(/^Private_(?:Clean|Dirty): +(\d+) kB/gm)];
    return kib.reduce((sum, [, one]) => sum + Number(one), 0) / 1024;
  });
  return Math.max(...own);
}

async function heap() {
  await cdp.send("HeapProfiler.collectGarbage");
  const { metrics } = await cdp.send("Performance.getMetrics");
  const value = (name) => metrics.find((metric) => metric.name === name)?.value ?? 0;
  return { mib: value("JSHeapUsedSize") / 2 ** 20, nodes: value("Nodes") };
}

const open = async (hash) => {
  await page.evaluate((to) => (location.hash = to), hash);
  await page.waitForTimeout(250);
};
const QUERIES = ["", "tcp", "udp", "port 443", "app dns", "packets > 20", "host 10.0.0.1"];
const FIELDS = ["", "sni", "resp_port", "orig_ip", "state"];
let actions = 0;

async function round(number) {
  const q = encodeURIComponent(QUERIES[number % QUERIES.length]);
  const field = FIELDS[number % FIELDS.length];
  const steps = [
    `#/overview`,
    `#/sessions?t=all&q=${q}${v}`,
    `#/sessions?t=all&q=${q}&series=${field}&by=packets${v}`,
    `#/sessions?t=all&q=${q}&group=${field}${v}`,
    `#/sessions?t=all&q=${q}&sort=-bytes${v}`,
    `#/talkers?t=all&q=${q}${v}`,
    `#/dns?t=all${v}`,
    `#/storage?${v}`,
    `#/findings?${v}`,
    `#/audit`,
    `#/sessions?t=all${v}`,
  ];
  for (const hash of steps) {
    await open(hash);
    actions += 1;
  }
  const grid = page.getByRole("grid", { name: "Sessions" });
  await grid.getByRole("gridcell").first().waitFor({ timeout: 20_000 });
  for (let turn = 0; turn < 20; turn += 1) {
    await grid.evaluate((box) => box.scrollBy({ top: 1500 }));
    await page.waitForTimeout(30);
    actions += 1;
  }
  const link = await grid.getByRole("link").nth(number % 10).getAttribute("href");
  for (const tab of ["fields", "packets", "sequence", "stream", "related"]) {
    await open(`${link.split("?")[0]}?tab=${tab}${v}`);
    actions += 1;
  }
}

const endMs = Date.now() + minutes * 60_000;
let [saidMs, most, failed] = [0, 0, 0];
for (let number = 0; Date.now() < endMs; number += 1) {
  await round(number).catch(() => (failed += 1));
  most = Math.max(most, await ownMib());
  if (Date.now() - saidMs > 60_000) {
    saidMs = Date.now();
    const { mib, nodes } = await heap();
    const left = ((endMs - saidMs) / 60_000).toFixed(0);
    console.log(`${left} min left, ${actions} actions: tab ${(await ownMib()).toFixed(0)} MiB, ` +
      `heap ${mib.toFixed(1)} MiB, ${nodes} nodes`);
  }
}
const { mib, nodes } = await heap();
console.log(`after ${minutes} min, ${actions} actions (${failed} rounds broken off): tab ` +
  `${(await ownMib()).toFixed(0)} MiB, at most ${most.toFixed(0)} MiB between; heap ` +
  `${mib.toFixed(1)} MiB, ${nodes} nodes`);
await browser.close();
