import AxeBuilder from "@axe-core/playwright";
import { expect, test, type Page } from "@playwright/test";

/** A recorder that serves a volume with sessions, and a token with all scopes. */
const TOKEN = process.env["WIRESPOOL_TOKEN"] ?? "";

const TABS = ["fields", "packets", "sequence", "stream", "related"];
const VIEWS = [
  "overview",
  "sessions?t=all",
  "sessions?t=all&q=tcp+and+hots+10.0.0.1",
  "talkers?t=all",
  "talkers?t=1h&versus=1d",
  "dns?t=all",
  "storage",
];

async function violations(page: Page): Promise<string[]> {
  // Answers have come, and what was dimmed while they loaded is no longer.
  await expect(page.locator(".old, .loading")).toHaveCount(0);
  const { violations: found } = await new AxeBuilder({ page }).analyze();
  return found.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.target.join(" ")}: ${node.failureSummary ?? ""}`),
  );
}

/** The part of the address that names a session. */
async function firstSession(page: Page): Promise<string> {
  await page.goto("/#/sessions?t=all&q=tcp");
  const row = page.getByRole("row").nth(1);
  const link = await row.getByRole("link").getAttribute("href");
  return link?.replace("#/", "").split("?")[0] ?? "";
}

// What depends on the theme does not depend on the width.
for (const [theme, width] of [
  ["light", 1400],
  ["dark", 400],
] as const) {
  test(`axe finds nothing, ${theme}, ${width} pixels wide`, async ({ page }) => {
    test.setTimeout(300_000);
    await page.setViewportSize({ width, height: 900 });
    await page.addInitScript((name) => localStorage.setItem("wirespool.theme", name), theme);
    await page.goto("/");
    await expect(page.getByLabel("Token")).toBeVisible();
    expect.soft(await violations(page), "login").toEqual([]);
    await page.goto(`/#token=${TOKEN}`);
    await page.reload();
    await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
    const session = await firstSession(page);
    for (const view of [...VIEWS, ...TABS.map((tab) => `${session}?tab=${tab}`)]) {
      await page.goto(`/#/${view}`);
      await page.waitForTimeout(600);
      expect.soft(await violations(page), view).toEqual([]);
    }
    await page.keyboard.press("?");
    await expect(page.getByRole("dialog")).toBeVisible();
    expect.soft(await violations(page), "help").toEqual([]);
  });
}
