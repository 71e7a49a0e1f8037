import { expect, test, type Page } from "@playwright/test";
import { saved } from "./saved";

/** A recorder that serves a volume with sessions, and a token with all scopes. */
const TOKEN = process.env["WIRESPOOL_TOKEN"] ?? "";

async function open(page: Page, view: string) {
  await page.goto(`/#token=${TOKEN}`);
  await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
  await page.goto(`/#/${view}`);
}

test("traffic is told apart by any field, in bytes, packets or sessions", async ({ page }) => {
  await open(page, "sessions?t=all");
  const traffic = page.getByRole("region", { name: "Traffic over time" });
  await expect(traffic.getByRole("button", { name: "SVG of Bytes over time" })).toBeVisible();
  await traffic.getByLabel("Told apart").selectOption("resp_port");
  await traffic.getByLabel("Counted").selectOption("sessions");
  await expect(page).toHaveURL(/series=resp_port/);
  await expect(page).toHaveURL(/by=sessions/);
  const plot = traffic.getByRole("button", { name: "SVG of Sessions over time, by resp_port" });
  await expect(plot).toBeVisible();
  await expect(traffic).toContainText("sessions that start in each");
  const first = traffic.getByRole("listitem").first().getByRole("button");
  const port = (await first.textContent())?.trim() ?? "";
  await first.click();
  await expect(page.getByRole("combobox", { name: "Query" })).toHaveValue(`resp_port = ${port}`);
  // Another tab with this link shows the same.
  await page.reload();
  await expect(plot).toBeVisible();
});

test("sessions are put together by any field, and taken apart again", async ({ page }) => {
  await open(page, "sessions?t=all");
  await expect(page.getByRole("grid", { name: "Sessions" })).toBeVisible();
  await page.getByLabel("Group by").selectOption("state");
  await expect(page).toHaveURL(/group=state/);
  const groups = page.getByRole("region", { name: "By state" });
  await expect(groups.getByRole("row").nth(1)).toBeVisible();
  await expect(page.getByRole("grid", { name: "Sessions" })).toBeHidden();
  await groups.getByRole("button", { name: /^Only/ }).first().click();
  await expect(page.getByRole("combobox", { name: "Query" })).toHaveValue(/^state/);
  await page.getByLabel("Group by").selectOption("");
  await expect(page.getByRole("grid", { name: "Sessions" })).toBeVisible();
});

test("the rows and each table are saved as Parquet", async ({ page }) => {
  const isParquet = (file: Buffer) =>
    [file.subarray(0, 4), file.subarray(-4)].every((magic) => magic.toString() === "PAR1");
  await open(page, "sessions?t=all");
  await expect(page.getByRole("gridcell").first()).toBeVisible();
  const rows = await saved(page, () =>
    page.getByRole("button", { name: "Parquet", exact: true }).click(),
  );
  expect(isParquet(rows)).toBe(true);
  expect(rows.toString("latin1")).toContain("session_id");
  await open(page, "talkers?t=all");
  const button = page.getByRole("button", { name: "Parquet of by-orig_ip" });
  await expect(button).toBeVisible();
  expect(isParquet(await saved(page, () => button.click()))).toBe(true);
});

async function openSession(page: Page, query: string) {
  await open(page, `sessions?t=all&q=${encodeURIComponent(query)}`);
  await page.getByRole("row").nth(1).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Session");
}

test("a field of a header marks its bytes, and a byte its field", async ({ page }) => {
  await openSession(page, "tcp");
  await page.getByRole("tab", { name: "Packets" }).click();
  const fields = page.getByRole("list", { name: "Fields of the headers" });
  const sequence = fields.getByRole("button", { name: /^sequence number/ });
  await sequence.focus();
  const bytes = page.getByRole("table", { name: "Bytes of the packet" });
  await expect(bytes.locator(".hex .chosen")).toHaveCount(4);
  const marked = (await bytes.locator(".hex .chosen").allTextContents()).join("");
  await expect(sequence).toContainText(String(parseInt(marked, 16)));
  await bytes.locator(".hex span").first().hover();
  await expect(fields.getByRole("button", { pressed: true })).toHaveCount(1);
  await expect(sequence).toHaveAttribute("aria-pressed", "false");
});

test("the bytes of a packet are seen on a phone, too", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await openSession(page, "tcp");
  await page.getByRole("tab", { name: "Packets" }).click();
  const first = page.getByRole("table", { name: "Bytes of the packet" }).locator(".hex").first();
  await first.scrollIntoViewIfNeeded();
  await expect(first).toBeInViewport({ ratio: 0.4 });
  const box = page.locator(".bytes .scroll");
  expect(await box.evaluate(({ clientHeight }) => clientHeight)).toBeGreaterThan(20);
});

test("packets of a session are held, or the page says why not", async ({ page }) => {
  await openSession(page, "tcp");
  await page.getByRole("button", { name: "Hold", exact: true }).click();
  // The service of the tests has no folder for holds.
  const said = page.getByRole("alert").filter({ hasText: /hold/i });
  await expect(said.or(page.getByText(/^held, /)).first()).toBeVisible();
  await page.route("**/api/v1/holds?*", (route) => {
    expect(route.request().method()).toBe("POST");
    expect(route.request().headers()["x-wirespool"]).toBe("1");
    return route.fulfill({
      json: {
        hold: { file: "a.pcapng", packets: 7 },
        statement: { state: "complete", text: "7 packets, complete" },
      },
    });
  });
  await page.getByRole("button", { name: "Hold", exact: true }).click();
  await expect(page.getByText("held, complete")).toBeVisible();
  await expect(page.getByText("7 packets in a.pcapng")).toBeVisible();
});

/** Ten million made-up sessions, a page for each cursor. */
async function manySessions(page: Page, total: number) {
  await page.route("**/api/v1/sessions?*", async (route) => {
    const url = new URL(route.request().url());
    const from = Number(url.searchParams.get("cursor") ?? 0);
    const count = Math.min(Number(url.searchParams.get("limit")), total - from);
    const sessions = Array.from({ length: count }, (_, at) => ({
      session_id: `1.0-${from + at}`,
      start_ns: 1_700_000_000_000_000_000 - (from + at) * 1e6,
      orig_ip: "10.0.0.1",
      orig_port: (from + at) % 65_536,
    }));
    const next = from + count;
    await route.fulfill({
      json: {
        sessions,
        count,
        answer: "x",
        statement: { state: "complete", text: `${count} sessions, complete` },
        next_cursor: next < total ? String(next) : null,
      },
    });
  });
}

test("rows that were given up for memory come back where somebody looks", async ({ page }) => {
  test.setTimeout(120_000);
  await manySessions(page, 90_000);
  await open(page, "sessions?t=all");
  const grid = page.getByRole("grid", { name: "Sessions" });
  await expect(grid.getByRole("gridcell").first()).toBeVisible();
  const bottom = () => grid.evaluate((box) => box.scrollTo({ top: box.scrollHeight }));
  await expect(async () => {
    await bottom();
    await expect(grid).toHaveAttribute("aria-rowcount", "90001", { timeout: 100 });
  }).toPass({ timeout: 90_000, intervals: [50] });
  await bottom();
  await expect(grid.getByRole("link").last()).toHaveAttribute("href", /1\.0-89999/);
  await grid.evaluate((box) => box.scrollTo({ top: 0 }));
  await expect(grid.getByRole("link").first()).toHaveAttribute("href", /1\.0-0\b/);
  expect(await page.getByRole("row").count()).toBeLessThan(120);
});

test("groups scroll in their box, and the page is not longer than the window", async ({ page }) => {
  await page.setViewportSize({ width: 1400, height: 660 });
  await open(page, "sessions?t=all&group=resp_ip");
  await expect(page.getByRole("region", { name: "By resp_ip" })).toBeVisible();
  const beyond = await page.evaluate(() => document.documentElement.scrollHeight - innerHeight);
  expect(beyond).toBe(0);
});

test("of a time before the recording it is said that nothing was recorded", async ({ page }) => {
  await open(page, "sessions?t=1000000000000000000/1000000100000000000");
  await expect(page.getByText("Nothing was recorded in this time. The first")).toBeVisible();
});

test("on a phone the view that is shown is named in the row of views", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open(page, "sessions?t=all");
  for (const name of ["Settings", "Overview"]) {
    await page.goto(`/#/${name.toLowerCase()}`);
    const link = page.getByRole("link", { name, exact: true });
    await expect(link).toHaveAttribute("aria-current", "page");
    await expect(link).toBeInViewport({ ratio: 1 });
  }
});
