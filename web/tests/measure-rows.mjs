// Scrolls through ten million made-up rows, and counts frames:
// WIRESPOOL_URL=... WIRESPOOL_TOKEN=... node tests/measure-rows.mjs [ROWS] [ROUNDS]
// The answers are made in the page, so that neither a recorder nor this script is measured.
import { chromium } from "@playwright/test";

const [rows = "10000000", rounds = "5"] = process.argv.slice(2);
const url = process.env.WIRESPOOL_URL ?? "http://127.0.0.1:8420";
const token = process.env.WIRESPOOL_TOKEN ?? "";
const SECONDS = 5;
/** Pixels of one turn of a wheel, and turns a second. */
const WHEEL = { px: 120, perS: 40 };

/** Runs in the page: pages of sessions, as many as wanted. */
function makeUp(total) {
  const fetchFirst = window.fetch.bind(window);
  window.fetch = async (input, init) => {
    const asked = new URL(String(input), location.href);
    if (!asked.pathname.endsWith("/api/v1/sessions")) {
      return fetchFirst(input, init);
    }
    const from = Number(asked.searchParams.get("cursor") ?? 0);
    const count = Math.min(Number(asked.searchParams.get("limit")), total - from);
    const sessions = Array.from({ length: count }, (_, at) => ({
      session_id: `1.0-${from + at}`, proto: 6, proto_name: "tcp", app: "tls",
      start_ns: 1.7e18 - (from + at) * 1e6, end_ns: 1.7e18, duration_ns: 1e6 * (at % 900),
      orig_ip: `10.0.${at % 250}.1`, orig_port: 1024 + (at % 60_000),
      resp_ip: `192.168.${at % 100}.7`, resp_port: 443, sni: `host-${from + at}.example`,
      orig_packets: at, resp_packets: at, orig_frame_bytes: 100 * at, resp_frame_bytes: 900 * at,
      orig_payload_bytes: 0, resp_payload_bytes: 0, state: "SF", history: "ShADadFf",
    }));
    const next = from + count < total ? String(from + count) : null;
    const statement = { state: "complete", text: "made up" };
    const body = { sessions, count, answer: "x", statement, next_cursor: next };
    return new Response(JSON.stringify(body));
  };
}

/** Runs in the page: times between frames, until it is told to stop. */
function countFrames() {
  window.frames_ms = [];
  window.isCounting = true;
  let last = performance.now();
  const frame = (now) => {
    window.frames_ms.push(now - last);
    last = now;
    if (window.isCounting) {
      requestAnimationFrame(frame);
    }
  };
  requestAnimationFrame(frame);
}

const sorted = (values) => values.toSorted((a, b) => a - b);
const at = (values, share) => sorted(values)[Math.floor(share * (values.length - 1))] ?? NaN;

function say(name, frames) {
  const perS = frames.map((ms) => 1000 / (ms.reduce((sum, one) => sum + one, 0) / ms.length));
  const all = frames.flat();
  const late = all.filter((ms) => ms > 25).length;
  console.log(
    `${name}: ${at(perS, 0.5).toFixed(1)} frames/s, median of ${perS.length} rounds ` +
    `(${at(perS, 0).toFixed(1)} to ${at(perS, 1).toFixed(1)}); a frame ` +
    `${at(all, 0.5).toFixed(1)} ms, 99 % within ${at(all, 0.99).toFixed(1)} ms; ` +
    `${((100 * late) / all.length).toFixed(1)} % took longer than 25 ms`);
}

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const args = ["--no-sandbox", "--enable-precise-memory-info"];
const browser = await chromium.launch({ executablePath, args });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
const cdp = await page.context().newCDPSession(page);
await page.addInitScript(makeUp, Number(rows));
await page.goto(`${url}/#token=${token}`);
await page.getByRole("navigation", { name: "Views" }).waitFor();
await page.goto(`${url}/#/sessions?t=1h`);
const grid = page.getByRole("grid", { name: "Sessions" });
await grid.getByRole("gridcell").first().waitFor();

async function measured(act) {
  await page.evaluate(countFrames);
  await act();
  await page.evaluate(() => (window.isCounting = false));
  return page.evaluate(() => window.frames_ms.slice(1));
}

async function wheel() {
  await grid.hover();
  const turns = SECONDS * WHEEL.perS;
  for (let turn = 0; turn < turns; turn += 1) {
    await page.mouse.wheel(0, WHEEL.px);
    await page.waitForTimeout(1000 / WHEEL.perS);
  }
}

async function heap() {
  await cdp.send("HeapProfiler.collectGarbage");
  return page.evaluate(() => (performance.memory.usedJSHeapSize / 2 ** 20).toFixed(1));
}

async function series(name, act) {
  const frames = [];
  for (let round = 0; round < Number(rounds); round += 1) {
    frames.push(await measured(() => act(round)));
  }
  say(name, frames);
}

await series("nothing is scrolled", () => page.waitForTimeout(1000 * SECONDS));
await series("the first rows, by wheel, pages are loaded", wheel);
const began = Date.now();
await grid.evaluate(async (box, total) => {
  while (Number(box.getAttribute("aria-rowcount")) !== total + 1) {
    box.scrollTo({ top: box.scrollHeight });
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}, Number(rows));
console.log(`${rows} rows reached in ${((Date.now() - began) / 1000).toFixed(0)} s; heap ${
  await heap()} MiB; ${await page.getByRole("row").count()} rows in the document`);
const share = (part) => grid.evaluate(
  (box, to) => box.scrollTo({ top: to * box.scrollHeight }), part);
await series("in the middle of them, by wheel, pages come back", async (round) => {
  await share(0.2 + 0.1 * round);
  await wheel();
});
await series("dragging the scroll bar through all of them", async () => {
  for (let step = 0; step <= 100; step += 1) {
    await share(step / 100);
    await page.waitForTimeout((1000 * SECONDS) / 100);
  }
});
console.log(`heap afterwards ${await heap()} MiB`);
await browser.close();
