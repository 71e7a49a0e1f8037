// Measures the page, for docs/web.md:
// WIRESPOOL_URL=... WIRESPOOL_TOKEN=... node tests/measure.mjs [MINUTES]
// MINUTES is how long the Overview stays open for its memory (default 10; 0 leaves it out).
import { chromium } from "@playwright/test";
import { readFileSync } from "node:fs";
import { constants, brotliCompressSync, gzipSync } from "node:zlib";

const minutes = Number(process.argv[2] ?? 10);
const url = process.env.WIRESPOOL_URL ?? "http://127.0.0.1:8420";
const token = process.env.WIRESPOOL_TOKEN ?? "";
const volume = process.env.VOLUME ?? "";
const TIMES = 10;
const v = volume === "" ? "" : `&v=${volume}`;

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  const middle = [sorted[Math.ceil(half) - 1], sorted[Math.floor(half)]];
  return (middle[0] + middle[1]) / 2;
}

const spread = (values) =>
  `median ${median(values).toFixed(1)} ms, ${Math.min(...values).toFixed(1)} to ` +
  `${Math.max(...values).toFixed(1)} ms, n = ${values.length}`;

function sizes() {
  for (const name of ["index.html", "app.js", "app.css", "favicon.svg"]) {
    const bytes = readFileSync(new URL(`../dist/${name}`, import.meta.url));
    const quality = { [constants.BROTLI_PARAM_QUALITY]: 11 };
    const brotli = brotliCompressSync(bytes, { params: quality }).length;
    const gzip = gzipSync(bytes, { level: 9 }).length;
    console.log(`size ${name}: ${bytes.length} bytes, gzip ${gzip}, brotli ${brotli}`);
  }
}

/** Runs in the page: how long an answer takes from its last byte until it is painted. */
function clockAnswers() {
  window.paints = [];
  Response.prototype.json = async function json() {
    const text = await this.text();
    const word = new URL(this.url).pathname.split("/").pop();
    const from = performance.now();
    requestAnimationFrame(() => {
      // A message is handled behind the painting of the frame.
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => window.paints.push([word, performance.now() - from]);
      port2.postMessage(0);
    });
    return JSON.parse(text);
  };
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--enable-precise-memory-info"],
});

async function loggedIn() {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  const page = await context.newPage();
  await page.goto(`${url}/#token=${token}`);
  await page.getByRole("navigation", { name: "Views" }).waitFor();
  return { context, page };
}

async function firstPaint() {
  const paints = [];
  const contents = [];
  const { context: known } = await loggedIn();
  const storageState = await known.storageState();
  await known.close();
  for (let n = 0; n < TIMES; n += 1) {
    // A new context has an empty cache.
    const context = await browser.newContext({
      storageState, viewport: { width: 1400, height: 900 },
    });
    const page = await context.newPage();
    await page.goto(url);
    await page.getByRole("article").first().waitFor();
    contents.push(await page.evaluate(() => performance.now()));
    paints.push(await page.evaluate(
      () => performance.getEntriesByName("first-contentful-paint")[0].startTime));
    await context.close();
  }
  console.log(`first paint: ${spread(paints)}`);
  console.log(`overview with its volumes: at most ${spread(contents)}`);
}

async function views() {
  const { context, page } = await loggedIn();
  await page.addInitScript(clockAnswers);
  await page.goto(`${url}/#/sessions?t=all&q=tcp+and+packets+%3E+100${v}`);
  const href = await page.getByRole("row").nth(1).getByRole("link").getAttribute("href");
  const session = href.split("?")[0];
  const asked = [
    ["Overview", "#/overview", "volumes"],
    ["Sessions: table of 200 rows", `#/sessions?t=all${v}`, "sessions"],
    ["Sessions: plot and values", `#/sessions?t=all${v}`, "summary"],
    ["Session: fields", `${session}?tab=fields${v}`, "sessions"],
    ["Session: packets", `${session}?tab=packets${v}`, "packets"],
    ["Session: sequence", `${session}?tab=sequence${v}`, "packets"],
    ["Session: stream", `${session}?tab=stream${v}`, "packets"],
    ["Talkers", `#/talkers?t=all${v}`, "summary"],
    ["DNS", `#/dns?t=all${v}`, "summary"],
    ["Storage", "#/storage", "volumes"],
  ];
  for (const [name, hash, word] of asked) {
    const values = [];
    for (let n = 0; n < TIMES; n += 1) {
      await page.goto("about:blank");
      await page.goto(`${url}/${hash}`);
      const isThere = (wanted) => window.paints.some(([one]) => one === wanted);
      await page.waitForFunction(isThere, word);
      values.push(await page.evaluate(
        (wanted) => window.paints.find(([one]) => one === wanted)[1], word));
    }
    console.log(`${name}: ${spread(values)}`);
  }
  await context.close();
}

async function memory() {
  const { context, page } = await loggedIn();
  const session = await context.newCDPSession(page);
  await session.send("Performance.enable");
  for (let minute = 0; minute <= minutes; minute += 1) {
    await session.send("HeapProfiler.collectGarbage");
    const { metrics } = await session.send("Performance.getMetrics");
    const value = (name) => metrics.find((metric) => metric.name === name)?.value ?? 0;
    const heap = (value("JSHeapUsedSize") / 2 ** 20).toFixed(2);
    console.log(`memory after ${minute} min: heap ${heap} MiB, ${value("Nodes")} nodes`);
    if (minute < minutes) {
      await page.waitForTimeout(60_000);
    }
  }
  await context.close();
}

sizes();
await firstPaint();
await views();
if (minutes > 0) {
  await memory();
}
await browser.close();
