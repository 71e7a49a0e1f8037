import AxeBuilder from "@axe-core/playwright";
import { expect, test, type Page } from "@playwright/test";
import { saved } from "./saved";

const TOKEN = process.env["WIRESPOOL_TOKEN"] ?? "";

async function enter(page: Page, view: string) {
  await page.goto(`/#token=${TOKEN}`);
  await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
  await page.goto(`/#/${view}`);
}

async function violations(page: Page): Promise<string[]> {
  const { violations: found } = await new AxeBuilder({ page }).analyze();
  return found.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.target.join(" ")}: ${node.failureSummary ?? ""}`),
  );
}

test("the ring is drawn over the surface, read cell by cell, and as a table", async ({ page }) => {
  await enter(page, "storage");
  const ring = page.getByRole("group", { name: /The ring, cell by cell/ }).first();
  await expect(ring).toBeVisible();
  await ring.focus();
  await page.keyboard.press("ArrowRight");
  await expect(page.getByText(/^Zone 0, slots/).first()).toBeVisible();
  await page.getByText("As a table, by zone").first().click();
  await expect(page.getByRole("columnheader", { name: "Never written" }).first()).toBeVisible();
  const csv = await saved(page, () =>
    page.getByRole("button", { name: /CSV of ring-/ }).first().click(),
  );
  expect(csv.toString().split("\n")[0]).toBe(
    "Zone,Cells,With stripes,Never written,Next to be overwritten,Damaged,With holds,Head",
  );
  const svg = await saved(page, () =>
    page.getByRole("button", { name: /SVG of Ring/ }).first().click(),
  );
  expect(svg.toString()).toContain("<svg");
  expect(svg.toString()).not.toContain("class=");
  const png = await saved(page, () =>
    page.getByRole("button", { name: /PNG of Ring/ }).first().click(),
  );
  expect(png.subarray(1, 4).toString()).toBe("PNG");
});

test("a ring that cannot be looked at says why", async ({ page }) => {
  await page.route("**/api/v1/ring?*", (route) =>
    route.fulfill({
      status: 500,
      contentType: "application/problem+json",
      body: JSON.stringify({
        type: "urn:wirespool:problem:unreadable",
        title: "the volume cannot be read",
      }),
    }),
  );
  await enter(page, "storage");
  await expect(page.getByRole("alert").filter({ hasText: "cannot be read" })).toBeVisible();
  expect(await violations(page)).toEqual([]);
});

test("two reports of a qualification are compared", async ({ page }) => {
  const report = (rate: number) => ({
    guaranteed_bytes_per_s: rate,
    mean_bytes_per_s: rate + 10,
    target: { path: "/dev/sdx" },
    started_ns: 1_700_000_000_000_000_000,
    parts: [
      {
        part: "sweep",
        steps: [0, 1, 2].map((at) => ({ offset: at * 1e12, bytes: rate, ns: 1e9 * (1 + at) })),
      },
    ],
  });
  await page.route("**/api/v1/qualification?*", (route) =>
    route.fulfill({
      json: {
        volume_id: "v",
        reports: [
          { file: "before.json", id: "1", is_of_volume: true, report: report(200e6) },
          { file: "after.json", id: "2", is_of_volume: false, report: report(150e6) },
        ],
      },
    }),
  );
  await enter(page, "storage");
  const panel = page.getByRole("region", { name: /Qualification of/ }).first();
  await expect(panel).toContainText("before.json");
  await panel.getByLabel("Compare with").selectOption("1");
  await expect(panel.getByRole("row", { name: /Guaranteed/ })).toContainText("\u221225.0 %");
  await expect(panel.getByRole("img", { name: "Rate over the surface" })).toBeVisible();
  const svg = await saved(page, () =>
    panel.getByRole("button", { name: "SVG of Rate over the surface" }).click(),
  );
  expect(svg.toString()).toMatch(/<path d="M[\d.]+ [\d.]+L/);
  expect(svg.toString()).toContain("<text");
  const png = await saved(page, () =>
    panel.getByRole("button", { name: "PNG of Rate over the surface" }).click(),
  );
  expect(png.length).toBeGreaterThan(1000);
  expect(await violations(page)).toEqual([]);
});

test("without reports the page says how to measure", async ({ page }) => {
  await enter(page, "storage");
  await expect(page.getByText("The service has no report to show").first()).toBeVisible();
});

test("findings are shown as they are, and what was not seen", async ({ page }) => {
  await enter(page, "findings");
  await expect(page.getByText(/nothing found|finding/).first()).toBeVisible();
  await expect(page.getByText(/wirespool diagnose recorder/)).toBeVisible();
  await page.unrouteAll();
});

test("a finding has evidence, cause, remedy and a command", async ({ page }) => {
  await page.route("**/api/v1/findings?*", (route) =>
    route.fulfill({
      json: {
        version: 1,
        looked_at: ["the recorder of a volume"],
        findings: [
          {
            kind: "writer_drops",
            severity: "failing",
            what: "packets were lost at the writer",
            evidence: ["7 packets"],
            cause: "the disks are too slow <script>",
            remedies: [{ what: "a larger pool", now: ["record --pool 2G"] }],
          },
        ],
        unseen: [{ what: "the card", needs: "CAP_NET_ADMIN" }],
      },
    }),
  );
  await enter(page, "findings");
  const finding = page.getByRole("article", { name: "Finding 1" });
  await expect(finding).toContainText("the disks are too slow <script>");
  await expect(finding).toContainText("record --pool 2G");
  await expect(page.getByRole("region", { name: "Not seen" })).toContainText("CAP_NET_ADMIN");
  const csv = await saved(page, () =>
    page.getByRole("button", { name: /CSV of findings/ }).click(),
  );
  expect(csv.toString()).toContain("1,failing,packets were lost at the writer,");
  expect(await violations(page)).toEqual([]);
});

test("a job is started, goes on to its end, and has a result", async ({ page }) => {
  await enter(page, "jobs");
  await page.getByRole("button", { name: "Start" }).click();
  const row = page.getByRole("row", { name: /verify/ }).first();
  await expect(row).toContainText(/done, clean/, { timeout: 30_000 });
  await row.getByRole("button", { name: /Result of verify/ }).click();
  await expect(page.getByRole("region", { name: "Result", exact: true })).toContainText("{");
  expect(await violations(page)).toEqual([]);
});

test("a job that is refused says why", async ({ page }) => {
  await enter(page, "jobs");
  await page.getByLabel("What").selectOption("hold");
  await page.getByLabel("Which sessions").fill("hsot 10.0.0.1");
  await page.getByRole("button", { name: "Start" }).click();
  await expect(page.getByRole("alert").filter({ hasText: /\S/ })).toBeVisible();
});

test("a job that goes on is shown with its progress, and cancelled", async ({ page }) => {
  const job = { id: "1", kind: "scrub", volume: "v", by: "x", made_ns: 1, done: 5, of: 10 };
  await page.route("**/api/v1/jobs", (route) =>
    route.fulfill({ json: { jobs: [{ ...job, state: "running", begun_ns: 2 }] } }),
  );
  await page.route("**/api/v1/jobs/1/events", (route) =>
    route.fulfill({
      contentType: "text/event-stream",
      body: `event: progress\ndata: ${JSON.stringify({ ...job, state: "running", done: 7 })}\n\n`,
    }),
  );
  let isCancelled = false;
  await page.route("**/api/v1/jobs/1", (route) => {
    isCancelled = route.request().method() === "DELETE";
    return route.fulfill({ json: { ...job, state: "cancelled", ended_ns: 3, reason: "by x" } });
  });
  await enter(page, "jobs");
  await expect(page.getByRole("progressbar")).toHaveAttribute("aria-valuenow", "70");
  expect(await violations(page)).toEqual([]);
  await page.getByRole("button", { name: /Cancel scrub/ }).click();
  await expect(page.getByRole("row", { name: /scrub/ })).toContainText("cancelled");
  expect(isCancelled).toBe(true);
});

test("who asks for an extract withdraws it, who approves takes no packets", async ({ page }) => {
  const request = {
    state: "waiting",
    query: "host 10.0.0.1",
    volume: "v",
    case: "2026/17 <b>",
    purpose: "a leak",
    made_ns: 1,
    until_ns: 2,
  };
  const theirs = { ...request, id: "aaaaaaaaaa", is_yours: false, requester: { name: "anna" } };
  const own = { ...request, id: "bbbbbbbbbb", is_yours: true, requester: { name: "x" } };
  const done: string[] = [];
  await page.route("**/api/v1/requests**", (route) =>
    route.fulfill({ json: { requests: [theirs, own], count: 2 } }),
  );
  await page.route("**/api/v1/requests/*", (route) => {
    done.push(`${route.request().method()} own`);
    return route.fulfill({ json: { ...own, state: "withdrawn" } });
  });
  await page.route("**/api/v1/requests/*/approve", (route) => {
    done.push(`${route.request().method()} theirs`);
    return route.fulfill({ json: { ...theirs, state: "approved", approver: { name: "x" } } });
  });
  await enter(page, "requests");
  const row = page.getByRole("row", { name: /anna/ });
  await expect(row).toContainText("2026/17 <b>");
  expect(await violations(page)).toEqual([]);
  await row.getByRole("button", { name: "Approve aaaaaaaa" }).click();
  await expect(row).toContainText("approved");
  await expect(row.getByRole("link", { name: /Download/ })).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Approve bbbbbbbb" })).toHaveCount(0);
  await page.getByRole("button", { name: "Withdraw bbbbbbbb" }).click();
  await expect(page.getByRole("table")).toContainText("withdrawn");
  expect(done).toEqual(["POST theirs", "DELETE own"]);
});

test("an extract is asked for, and approved by somebody else only", async ({ page }) => {
  await enter(page, "requests");
  const form = page.getByRole("form", { name: "Ask for an extract" });
  await form.getByLabel("Which sessions").fill("hsot 10.0.0.1");
  await form.getByLabel("Case").fill("2026/17");
  await form.getByLabel("Purpose").fill("a leak");
  await form.getByRole("button", { name: "Ask" }).click();
  await expect(page.getByRole("alert").filter({ hasText: /\S/ })).toBeVisible();
  await form.getByLabel("Which sessions").fill("port 53");
  await form.getByRole("button", { name: "Ask" }).click();
  const row = page.getByRole("row", { name: /2026\/17/ }).first();
  await expect(row).toContainText("waiting");
  await expect(row.getByRole("button", { name: /Approve/ })).toHaveCount(0);
  expect(await violations(page)).toEqual([]);
  await row.getByRole("button", { name: /Withdraw/ }).click();
  await expect(row).toContainText("withdrawn");
});

test("a service that keeps no requests says so, and asks for none", async ({ page }) => {
  await page.route("**/api/v1/whoami", async (route) => {
    const response = await route.fetch();
    const whoami = (await response.json()) as { manages: object };
    const manages = { ...whoami.manages, requests: false };
    await route.fulfill({ response, json: { ...whoami, manages } });
  });
  await enter(page, "requests");
  await page.reload();
  await expect(page.getByText("This service keeps no requests")).toBeVisible();
  await expect(page.getByRole("form", { name: "Ask for an extract" })).toHaveCount(0);
});

test("settings have the value that counts, and what changes it", async ({ page }) => {
  await enter(page, "settings");
  const row = page.getByRole("row", { name: /^token_file/ });
  await expect(row).toContainText("tokens");
  await expect(row).toContainText("wirespool serve token create");
  await expect(page.getByRole("row", { name: /^people_file/ })).toContainText("not set");
  expect(await violations(page)).toEqual([]);
});

test("a table of talkers is saved as CSV, with plain numbers", async ({ page }) => {
  await enter(page, "talkers?t=all");
  const button = page.getByRole("button", { name: /CSV of by-/ }).first();
  await expect(button).toBeVisible();
  const csv = await saved(page, () => button.click());
  expect(csv.toString().split("\n")[0]).toMatch(/,Sessions,Packets,Bytes,Share$/);
  expect(csv.toString().split("\n")[1]).toMatch(/,\d+,\d+,\d+,/);
});

test("the timeline is saved as SVG", async ({ page }) => {
  await enter(page, "sessions?t=all");
  const button = page.getByRole("button", { name: /SVG of Bytes over time/ });
  await expect(button).toBeVisible();
  const svg = (await saved(page, () => button.click())).toString();
  expect(svg).toContain("<clipPath");
  expect(svg).toContain("<text");
});

for (const [theme, width] of [
  ["light", 1400],
  ["dark", 400],
] as const) {
  test(`axe finds nothing in the views, ${theme}, ${width} wide`, async ({ page }) => {
    test.setTimeout(180_000);
    await page.setViewportSize({ width, height: 900 });
    await page.addInitScript((name) => localStorage.setItem("wirespool.theme", name), theme);
    for (const view of ["storage", "findings", "jobs", "requests", "settings"]) {
      await enter(page, view);
      await page.waitForTimeout(2500);
      expect.soft(await violations(page), view).toEqual([]);
    }
  });
}
