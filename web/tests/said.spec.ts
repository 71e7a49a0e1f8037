import { expect, test, type Page } from "@playwright/test";

/** A recorder that serves a volume with sessions, and a token with all scopes. */
const TOKEN = process.env["WIRESPOOL_TOKEN"] ?? "";

async function open(page: Page, view: string) {
  await page.goto(`/#token=${TOKEN}`);
  await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
  await page.goto(`/#/${view}`);
}

test("a name that nothing has is told of with those that there are", async ({ page }) => {
  await open(page, "sessions?t=24h&q=recording+nosuch");
  await expect(page.getByText(/^there is no recording .*nosuch.*recordings here:/)).toBeVisible();
  await expect(page.getByText("The time range may be too short.")).toHaveCount(0);
});

test("a plot of nothing has no width of its bars", async ({ page }) => {
  await open(page, "sessions?t=all&q=port+1");
  const plot = page.getByRole("region", { name: "Traffic over time" });
  await expect(plot).toContainText("No traffic in this time.");
  await expect(plot).not.toContainText("in each");
});

test("the legend has one remainder at most, and it is no protocol", async ({ page }) => {
  const names = Array.from({ length: 7 }, (_, index) => `p${index}`);
  const start = 1_700_000_000_000_000_000;
  const traffic = {
    width_ns: 1_000_000_000,
    series: [...names, "63 others"],
    others: 63,
    buckets: [[start, [9, 8, 7, 6, 5, 4, 3, 99]]],
  };
  await page.route("**/api/v1/summary?*", async (route) => {
    const response = await route.fetch();
    const summary = (await response.json()) as object;
    await route.fulfill({ response, json: { ...summary, traffic } });
  });
  await open(page, "sessions?t=all");
  const legend = page.getByRole("region", { name: "Traffic over time" }).getByRole("listitem");
  await expect(legend).toHaveText([...names, "others"]);
  await expect(legend.last().getByRole("button")).toBeDisabled();
});

test("all columns are seen at 1280 pixels, beside the values", async ({ page }) => {
  await page.setViewportSize({ width: 1280, height: 800 });
  await open(page, "sessions?t=all");
  const grid = page.getByRole("grid", { name: "Sessions" });
  await expect(grid.getByRole("gridcell").first()).toBeVisible();
  const hidden = await grid.evaluate((box) => box.scrollWidth - box.clientWidth);
  expect(hidden).toBeLessThanOrEqual(0);
});

test("each view has its keys in the help", async ({ page }) => {
  await open(page, "overview");
  await page.keyboard.press("?");
  for (const keys of ["g f", "g j  g e"]) {
    await expect(page.getByRole("dialog").getByText(keys, { exact: true })).toBeVisible();
  }
});

test("what the settings say of keys is a command that works", async ({ page }) => {
  await open(page, "settings");
  await expect(page.getByText("wirespool config explain recorder.max_age")).toBeVisible();
});

test("a token past its end is marked", async ({ page }) => {
  const name = `over-${Date.now()}`;
  const headers = { Authorization: `Bearer ${TOKEN}`, "X-Wirespool": "1" };
  const words = `name=${name}&scopes=sessions&expires=2001-01-01T00:00:00Z`;
  const made = await page.request.post(`/api/v1/tokens?${words}`, { headers });
  expect(made.ok()).toBe(true);
  await open(page, "people");
  await expect(page.getByRole("row").filter({ hasText: name })).toContainText("expired");
  const revoked = await page.request.delete(`/api/v1/tokens/${name}`, { headers });
  expect(revoked.ok()).toBe(true);
});
