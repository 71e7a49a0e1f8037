// Takes the pictures of docs/web.md:
// WIRESPOOL_URL=... WIRESPOOL_TOKEN=... node tests/pictures.mjs ../docs/pictures [NAME...]
// Paths of volumes are shown as if they were below /data, wherever they are.
import { chromium } from "@playwright/test";
import { mkdirSync } from "node:fs";

const [folder = "../docs/pictures", ...wanted] = process.argv.slice(2);
const url = process.env.WIRESPOOL_URL ?? "http://127.0.0.1:8420";
const token = process.env.WIRESPOOL_TOKEN ?? "";
/** The volume that is recorded, and one with sessions of all kinds. */
const live = process.env.LIVE ?? "l0";
const kept = process.env.KEPT ?? "vol";
/** Of the traffic in the volume, the part that has most to show. */
const times = process.env.TIMES ?? "all";

const query = "app in {http, tls, dns}";
const asked = `v=${kept}&t=${times}&q=${encodeURIComponent(query)}`;

const WIDTH = 1200;
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: WIDTH, height: 800 } });
mkdirSync(folder, { recursive: true });

/** Names below a folder of the machine become names below /data. */
function neutral(text) {
  return text.replace(/(?:\/[\w.-]+)+\/([\w.-]+)(?=["' :,])/g, "/data/$1");
}

await page.route("**/api/v1/volumes", async (route) => {
  const answer = await route.fetch();
  const body = neutral(await answer.text()).replaceAll('"path": "l0"', '"path": "/data/l0"');
  await route.fulfill({ response: answer, body });
});

async function picture(name, hash, act = async () => undefined, height = 800) {
  if (wanted.length > 0 && !wanted.includes(name)) {
    return;
  }
  await page.setViewportSize({ width: WIDTH, height });
  if (hash) {
    await page.goto(`${url}/#/${hash}`);
    await page.waitForTimeout(2000);
  }
  await answered();
  await act();
  await answered();
  await page.waitForTimeout(400);
  await page.screenshot({ path: `${folder}/web-${name}.png` });
  console.log(name);
}

/** Nothing is waited for any more. */
async function answered() {
  await page.waitForTimeout(600);
  await page.waitForFunction(() => document.querySelector(".dot") === null, null, {
    timeout: 60_000,
  });
}

async function firstSession(query) {
  await page.goto(`${url}/#/sessions?t=all&v=${kept}&q=${encodeURIComponent(query)}`);
  await page.waitForTimeout(2000);
  await answered();
  const row = page.getByRole("row").nth(1);
  const link = await row.getByRole("link").getAttribute("href");
  return link.replace("#/", "").split("?")[0];
}

await page.addInitScript(() => localStorage.setItem("wirespool.theme", "light"));
await picture("login", "overview", undefined, 420);
await page.goto(`${url}/#token=${token}`);
await page.reload();
await page.waitForTimeout(1500);

await picture("overview", `overview?v=${live}`, () => page.waitForTimeout(20_000), 900);
await picture("sessions", `sessions?${asked}`);
await picture("series", `sessions?${asked}&series=sni&by=sessions`, undefined, 660);
await picture("wrong", `sessions?v=${kept}&t=${times}&q=tcp+and+hots+10.0.0.1`, undefined, 420);
await picture("statement", `sessions?v=${live}&t=24h`, async () => {
  await page.locator("details.statement, .statement details summary").first().click();
});
const session = await firstSession(process.env.SESSION ?? "app http and packets > 30");
const again = await firstSession(process.env.AGAIN ?? "tcp.retransmitted > 5 and packets > 30");
const open = (tab, one = session) => `${one}?v=${kept}&tab=${tab}`;
await picture("session", open("fields"));
await picture("packets", open("packets"), async () => {
  const list = page.getByRole("group", { name: "Packets" });
  await list.focus();
  for (let n = 0; n < 5; n += 1) {
    await page.keyboard.press("j");
  }
  await page.locator(".split").evaluate((part) => part.scrollIntoView());
  await page.getByRole("button", { name: /^sequence number/ }).focus();
}, 620);
// A session whose fourth packet is a greeting of TLS.
const greeted = process.env.GREETED;
if (greeted) {
  await picture("decoded", `session/${greeted}?v=${kept}&tab=packets&decode=tshark`, async () => {
    await page.getByRole("list", { name: "Fields, as tshark" }).waitFor();
    await page.getByRole("group", { name: "Packets" }).focus();
    for (let n = 0; n < 3; n += 1) {
      await page.keyboard.press("j");
    }
    await page.getByText(/^Transport Layer Security/).waitFor();
    await page.locator(".split").evaluate((part) => part.scrollIntoView());
    await page.getByText(/^TLSv1.* Record Layer: Handshake/).first().click();
    await page.getByText(/^Handshake Protocol: Client Hello/).click();
    await page.getByText(/^Random: /).focus();
  }, 620);
}
await picture("sequence", open("sequence", again), undefined, 1000);
await picture("stream", open("stream"));
await picture("talkers", `talkers?${asked}`);
await picture("compare", `talkers?v=${live}&t=15m&field=resp_port&versus=before`, undefined, 700);
await picture("dns", `dns?v=${kept}&t=${times}`);
await picture("storage", `storage?v=${live}`, async () => {
  const article = page.getByRole("article", { name: `Volume ${live}` });
  await article.evaluate((element) => element.scrollIntoView());
}, 760);
await picture("help", `overview?v=${live}`, () => page.keyboard.press("?"));
await page.keyboard.press("Escape");
await page.goto(`${url}/#/sessions?${asked}&sort=-bytes`);
await page.keyboard.press("t");
await picture("dark", "", () => page.waitForTimeout(2000));

/** The views of people, by an administrator: PEOPLE="URL|NAME|PASSWORD". */
async function picturesOfPeople(staffed, name, password) {
  const take = async (file, height) => {
    await page.setViewportSize({ width: WIDTH, height });
    await page.waitForTimeout(1500);
    await page.screenshot({ path: `${folder}/web-${file}.png` });
    console.log(file);
  };
  await page.goto(`${staffed}/#/overview`);
  await take("person", 480);
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("navigation", { name: "Views" }).waitFor();
  await page.goto(`${staffed}/#/people`);
  await take("people", 620);
  await page.goto(`${staffed}/#/audit`);
  await take("audit", 620);
  await page.goto(`${staffed}/#/account`);
  const factor = page.getByRole("region", { name: "Second factor" });
  await factor.getByLabel("Your password").fill(password);
  await page.getByRole("button", { name: "Set up a second factor" }).click();
  await page.getByRole("img", { name: "QR code" }).waitFor();
  await take("account", 1150);
}

await page.unrouteAll({ behavior: "ignoreErrors" });
if (process.env.PEOPLE) {
  await picturesOfPeople(...process.env.PEOPLE.split("|"));
}
await browser.close();
