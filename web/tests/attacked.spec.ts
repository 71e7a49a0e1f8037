import { expect, test, type Page, type Route } from "@playwright/test";

/** A recorder that serves a volume with sessions, and a token with all scopes. */
const TOKEN = process.env["WIRESPOOL_TOKEN"] ?? "";

/** What others choose: marks of HTML, quotes, right-to-left marks, no width, 64 KiB. */
const SHORT =
  `"><img src=x onerror="pwned=1"><script>pwned=1</script>'\u202egnp.\u200bexe\0{{7*7}}`;
const LONG = `${SHORT}${"A".repeat(65_536)}`;

async function enter(page: Page, view: string) {
  await page.goto(`/#token=${TOKEN}`);
  await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
  await page.goto(`/#/${view}`);
}

/** Texts of an answer, but those that the page itself puts into addresses or reads as a kind. */
const KEPT = new Set([
  "session_id", "next_cursor", "answer", "state", "volume_id", "id", "data", "name",
  "scopes", "kind", "severity", "field", "cause", "why", "level", "content", "start", "time",
  "is_yours", "completeness", "source", "destination", "acknowledged", "hash", "prev", "expires",
  "since",
]);

function spoiled(value: unknown, name: string, text: string): unknown {
  if (Array.isArray(value)) {
    return value.map((one) => spoiled(one, name, text));
  }
  if (value !== null && typeof value === "object") {
    const entries = Object.entries(value);
    return Object.fromEntries(entries.map(([key, one]) => [key, spoiled(one, key, text)]));
  }
  return typeof value === "string" && !KEPT.has(name) ? `${text}${value}` : value;
}

interface Named {
  sessions?: Record<string, unknown>[];
  top?: { values: Record<string, unknown>[] }[];
  packets?: Record<string, unknown>[];
}

async function spoil(route: Route, text: string) {
  const response = await route.fetch();
  const body: unknown = await response.json().catch(() => null);
  if (body === null || !response.ok()) {
    await route.fulfill({ response });
    return;
  }
  // Of what is long a few: an answer has a limit of bytes.
  const json = (text.length < 1000 ? spoiled(body, "", text) : body) as Named;
  for (const session of json.sessions?.slice(0, 5) ?? []) {
    for (const field of ["sni", "http_host", "http_user_agent", "recording", "http_path"]) {
      session[field] = text;
    }
    session["dns_names"] = [text, text];
  }
  for (const { values } of json.top ?? []) {
    Object.assign(values[0] ?? {}, { text, query: `sni = "${text}"` });
  }
  Object.assign(json.packets?.[0] ?? {}, { info: text });
  await route.fulfill({ response, json });
}

for (const [name, text] of [["marks of HTML and of direction", SHORT], ["64 KiB", LONG]] as const) {
  test(`names with ${name} are text in every view`, async ({ page }) => {
    test.setTimeout(180_000);
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(error.message));
    await enter(page, "sessions?t=all&q=tcp");
    const link = await page.getByRole("row").nth(1).getByRole("link").getAttribute("href");
    const session = link?.replace("#/", "").split("?")[0] ?? "";
    const shared = /\/api\/v1\/(whoami|login|fields|jobs\/.*events)/;
    await page.route("**/api/v1/**", (route) =>
      shared.test(route.request().url()) ? route.continue() : spoil(route, text),
    );
    const tabs = ["fields", "packets", "stream", "related"].map((tab) => `${session}?tab=${tab}`);
    const views = [
      "overview", "sessions?t=all", "sessions?t=all&group=sni", "talkers?t=all", "dns?t=all",
      "storage", "findings", "jobs", "requests", "settings", "people", "audit", ...tabs,
    ];
    for (const view of views) {
      await page.goto(`/#/${view}`);
      await page.waitForTimeout(700);
      const found = await page.evaluate(() => ({
        isRun: "pwned" in window,
        elements: document.querySelectorAll("main img:not([alt]), main script").length,
        hidden: /[\u202e\u200b\0]/.test(document.body.innerText),
        // Beside a scroll bar it is less.
        wide: Math.max(0, document.documentElement.scrollWidth - innerWidth),
        direction: getComputedStyle(document.body).direction,
      }));
      expect.soft(found, view).toEqual({
        isRun: false, elements: 0, hidden: false, wide: 0, direction: "ltr",
      });
    }
    // Questions that are open would end in errors of the test.
    await page.unrouteAll({ behavior: "ignoreErrors" });
    expect(errors).toEqual([]);
  });
}

test("a query of 100 KB in the link is answered or refused in words", async ({ page }) => {
  const query = `host 10.0.0.1${" or host 10.0.0.1".repeat(6000)}`;
  await enter(page, `sessions?t=all&q=${encodeURIComponent(query)}`);
  const refused = page.getByRole("alert").filter({ hasText: /\S/ });
  const answered = page.getByLabel("What is missing from this answer");
  await expect(refused.or(answered).first()).toBeVisible({ timeout: 20_000 });
  await expect(page.getByRole("combobox", { name: "Query" })).toBeVisible();
  await page.goto("/#/overview");
  await expect(page.getByRole("article").first()).toBeVisible();
});

test("a link of another version shows what it can", async ({ page }) => {
  for (const view of [
    "sessions?t=7x&sort=-nosuch&by=weight&series=&group=&future=1",
    "talkers?t=all&by=weight&field=all&n=7&versus=1y",
    "session/1.0-0?tab=decoded",
    "sessions?t=9999999999999999999999/1&q=%E0%A4%A",
    "future?x=1",
    "%",
  ]) {
    await enter(page, view);
    await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
    await expect(page.locator("main")).not.toBeEmpty();
  }
  await enter(page, "sessions?t=all&series=nosuch");
  await expect(page.getByRole("alert").filter({ hasText: "nosuch" })).toBeVisible();
  await expect(page.getByRole("gridcell").first()).toBeVisible();
});

test("a browser whose clock is wrong shows the times of the service", async ({ page }) => {
  await page.clock.install({ time: Date.now() - 5 * 3_600_000 });
  await enter(page, "sessions?t=1h");
  await expect(page.getByText(/This browser's clock is 5(\.0+)? h\s+behind/)).toBeVisible();
  await page.getByRole("button", { name: "From \u2026 to" }).click();
  const end = await page.getByRole("textbox", { name: "to", exact: true }).inputValue();
  expect(Math.abs(Date.parse(`${end.replace(" ", "T")}Z`) - Date.now())).toBeLessThan(60_000);
});

test("a session that ends while a view is open leads to the login, and back", async ({ page }) => {
  await enter(page, "sessions?t=all&q=tcp");
  await expect(page.getByRole("gridcell").first()).toBeVisible();
  await page.context().clearCookies();
  await expect(page.getByLabel("Token")).toBeVisible();
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page).toHaveURL(/q=tcp/);
  await expect(page.getByRole("gridcell").first()).toBeVisible();
});

test("a right that is taken away meanwhile is told, and the view stays", async ({ page }) => {
  const headers = { Authorization: `Bearer ${TOKEN}`, "X-Wirespool": "1" };
  await enter(page, "sessions?t=all");
  await expect(page.getByRole("gridcell").first()).toBeVisible();
  await page.route("**/api/v1/s*?*", (route) =>
    route.fulfill({
      status: 403,
      contentType: "application/problem+json",
      body: JSON.stringify({
        type: "urn:wirespool:problem:no-scope",
        title: "the credential lacks the scope sessions",
      }),
    }),
  );
  await page.getByRole("button", { name: /^Ask again/ }).click();
  const told = page.getByRole("alert").filter({ hasText: "lacks the scope" });
  await expect(told.first()).toBeVisible();
  expect((await page.request.get("/api/v1/whoami", { headers })).ok()).toBe(true);
});

test("back and forward go through twenty views, and reload keeps each", async ({ page }) => {
  test.setTimeout(120_000);
  const views = ["overview", "sessions", "talkers", "dns", "storage", "findings", "jobs"];
  await enter(page, "overview");
  const hashes = Array.from({ length: 20 }, (_, at) =>
    `#/${views[at % views.length]}?t=1h&step=${at}`,
  );
  for (const hash of hashes) {
    await page.evaluate((to) => (location.hash = to), hash);
  }
  for (const hash of hashes.slice(0, -1).reverse()) {
    await page.goBack();
    expect(new URL(page.url()).hash).toBe(hash);
  }
  for (const hash of hashes.slice(1)) {
    await page.goForward();
    expect(new URL(page.url()).hash).toBe(hash);
  }
  for (const view of views) {
    await page.goto(`/#/${view}?t=1h`);
    await page.reload();
    await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
    await expect(page.locator("main")).not.toBeEmpty();
    expect(page.url()).toContain(`#/${view}?t=1h`);
  }
});

test("two tabs that change the same setting agree", async ({ page, context }) => {
  await enter(page, "overview");
  const other = await context.newPage();
  await other.goto("/#/overview");
  await expect(other.getByRole("navigation", { name: "Views" })).toBeVisible();
  const zoneOf = (tab: Page) => tab.getByRole("button", { name: /times$/ });
  const before = await zoneOf(page).textContent();
  await other.locator("main").click();
  await other.keyboard.press("u");
  await expect(zoneOf(other)).not.toHaveText(before ?? "");
  await expect(zoneOf(page)).toHaveText((await zoneOf(other).textContent()) ?? "");
});

test("a query that another tab has saved is kept", async ({ page, context }) => {
  await enter(page, "sessions?t=all&q=tcp");
  const other = await context.newPage();
  await other.goto("/#/sessions?t=all&q=udp");
  for (const [tab, name] of [[other, "of the other"], [page, "of this"]] as const) {
    tab.once("dialog", (dialog) => void dialog.accept(name));
    await tab.getByText("Queries \u25be").click();
    await tab.getByRole("button", { name: "Save this query" }).click();
  }
  const saved = await page.evaluate(() => localStorage.getItem("wirespool.saved"));
  expect(saved).toContain("of the other");
  expect(saved).toContain("of this");
});

test("a page of twice the size has nothing beside the screen", async ({ page }) => {
  // As browsers do it at 200 %: half as many pixels of the page.
  await page.setViewportSize({ width: 640, height: 400 });
  for (const view of ["overview", "sessions?t=all", "talkers?t=all", "storage", "jobs"]) {
    await enter(page, view);
    await page.waitForTimeout(600);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect.soft(wide, view).toBeLessThanOrEqual(0);
  }
});

test("ten thousand tags of a session are listed, and the page stays usable", async ({ page }) => {
  await page.route("**/api/v1/tags?*", (route) =>
    route.fulfill({
      json: {
        tags: Array.from({ length: 10_000 }, (_, at) => ({
          id: `t${at}`, tag: `tag ${at}`, by: "x", made_ns: 1, event_ns: 1, severity: 1,
        })),
      },
    }),
  );
  await enter(page, "sessions?t=all&q=tcp");
  await page.getByRole("row").nth(1).click();
  await expect(page.getByText("tag 0", { exact: false }).first()).toBeVisible();
  const started = Date.now();
  await page.getByRole("tab", { name: "Related" }).click();
  await expect(page.getByRole("tab", { name: "Related" })).toHaveAttribute("aria-selected", "true");
  expect(Date.now() - started).toBeLessThan(3000);
});

test("a service that is stopped is told, and goes on where it goes on", async ({ page }) => {
  await enter(page, "overview");
  await expect(page.getByRole("article").first()).toBeVisible();
  // It takes connections, as a stopped process does, and answers nothing.
  await page.route("**/api/v1/volumes", () => new Promise(() => undefined));
  await expect(page.getByText("The recorder does not answer since")).toBeVisible({
    timeout: 20_000,
  });
  await page.unroute("**/api/v1/volumes");
  await expect(page.getByText("The recorder does not answer since")).toBeHidden({
    timeout: 20_000,
  });
});

test("a slow link shows what it waits for", async ({ page }) => {
  await enter(page, "overview");
  await page.route("**/api/v1/s*?*", async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 2500));
    await route.continue().catch(() => undefined);
  });
  await page.goto("/#/sessions?t=all");
  await expect(page.getByText("Adding up the traffic")).toBeVisible();
  await expect(page.getByText(/^[12](\.\d)? s$/).first()).toBeVisible();
  await expect(page.getByRole("gridcell").first()).toBeVisible({ timeout: 15_000 });
});

test("volumes that cannot be read take no part of the page away", async ({ page }) => {
  await page.route("**/api/v1/whoami", async (route) => {
    const said = (await (await route.fetch()).json()) as { volumes: object[] };
    const unread = ["away", "away", "broken"].map((name) => ({ name, id: "" }));
    await route.fulfill({ json: { ...said, volumes: [...said.volumes, ...unread] } });
  });
  await page.goto(`/#token=${TOKEN}`);
  await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("Volume").getByRole("option")).toHaveCount(4);
  await expect(page.getByRole("button", { name: "Log out" })).toBeVisible();
  await page.goto("/#/sessions?v=nosuch&t=all");
  const said = page.getByText("a volume of this name is not served");
  await expect(said).toBeVisible();
  await expect(said).toHaveCount(1);
});

test("of a recorder that is gone no finding is called good", async ({ page }) => {
  await page.route("**/api/v1/volumes", async (route) => {
    const said = (await (await route.fetch()).json()) as { volumes: object[] };
    const volumes = said.volumes.map((one) => ({ ...one, clean_stop: false, is_open: false }));
    await route.fulfill({ json: { volumes } });
  });
  await page.goto(`/#token=${TOKEN}`);
  await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
  await page.goto("/#/findings");
  await expect(page.getByText("the recorder ended without a stop")).toBeVisible();
  await expect(page.getByRole("main").locator(".badge.good")).toHaveCount(0);
});
