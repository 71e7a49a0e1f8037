import AxeBuilder from "@axe-core/playwright";
import { expect, test, type Page } from "@playwright/test";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";

/** A service with the person "boss", and settings of a provider that this test starts. */
const URL_OF_STAFF = process.env["WIRESPOOL_STAFFED"] ?? "";
const PORT = process.env["WIRESPOOL_PROVIDER_PORT"] ?? "";
const PASSWORD = "correct horse battery";
const BUTTON = "Log in at the office";

test.use({ baseURL: URL_OF_STAFF });
test.describe.configure({ mode: "serial" });

let provider: ChildProcess | undefined;

async function start() {
  const words = ["tests/provider/main.mjs", PORT, "a secret of tests", `${URL_OF_STAFF}/`];
  const started = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "ignore"] });
  provider = started;
  for (let said = ""; !said.includes("ready"); ) {
    const [chunk] = (await once(started.stdout, "data")) as [Buffer];
    said += chunk.toString();
  }
}

async function stop() {
  if (provider) {
    const ended = once(provider, "exit");
    provider.kill("SIGKILL");
    await ended;
    provider = undefined;
  }
}

test.beforeAll(() => {
  test.skip(URL_OF_STAFF === "" || PORT === "", "not run: no service with a provider");
});
test.afterAll(stop);

const alert = (page: Page) => page.getByRole("alert").filter({ hasText: /\S/ });
const views = (page: Page) => page.getByRole("navigation", { name: "Views" });

/** Logs in at the provider's own page, and lets it say who it is. */
async function loginThere(page: Page, name: string) {
  await page.goto("/");
  await page.getByRole("button", { name: BUTTON }).click();
  await page.locator("[name=login]").fill(name);
  await page.locator("[name=password]").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

async function violations(page: Page): Promise<string[]> {
  const { violations: found } = await new AxeBuilder({ page }).analyze();
  return found.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.target.join(" ")}: ${node.failureSummary ?? ""}`),
  );
}

test("while the provider is away accounts of the service still count", async ({ page }) => {
  await page.goto("/");
  await page.getByRole("button", { name: BUTTON }).click();
  await expect(alert(page)).toContainText("identity provider does not answer");
  expect(await violations(page)).toEqual([]);
  await page.getByLabel("Name").fill("boss");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await expect(views(page)).toBeVisible();
});

test("who logs in at the provider has the role of the claims", async ({ page }) => {
  await start();
  await loginThere(page, "boss");
  await expect(views(page)).toContainText("People");
  expect(page.url()).not.toContain("code=");
  const cookies = await page.context().cookies(URL_OF_STAFF);
  expect(cookies.map(({ name }) => name)).toEqual(["wirespool"]);
  const whoami = (await (await page.request.get("/api/v1/whoami")).json()) as {
    name: string;
    person: unknown;
    guest: { role: string; subject: string };
  };
  expect(whoami).toMatchObject({
    name: "boss",
    person: null,
    guest: { role: "administrator", subject: "boss" },
  });
  await page.goto("/#/audit");
  await expect(page.getByRole("table", { name: "Audit" })).toContainText("boss (provider)");
  await page.goto("/#/account");
  await expect(page.getByText("the identity provider, which has your account")).toBeVisible();
  await page.getByRole("button", { name: "Log out" }).click();
  await expect(page.getByRole("button", { name: BUTTON })).toBeVisible();
});

test("another group has another role, and a filter", async ({ page }) => {
  await loginThere(page, "guest");
  await expect(views(page)).toBeVisible();
  await expect(views(page)).not.toContainText("People");
  const whoami = (await (await page.request.get("/api/v1/whoami")).json()) as { filter: string };
  expect(whoami.filter).toBe("port 53");
  expect((await page.request.get("/api/v1/people")).status()).toBe(403);
});

test("who is in no group has no role, and is told so", async ({ page }) => {
  await loginThere(page, "nobody");
  await expect(alert(page)).toContainText("no role at this recorder");
  await expect(alert(page)).toContainText("nobody");
  await expect(views(page)).toHaveCount(0);
  expect(await violations(page)).toEqual([]);
});

test("a login that another browser has begun does not end here", async ({ page, browser }) => {
  const other = await browser.newPage({ baseURL: URL_OF_STAFF });
  let back = "";
  other.on("request", (request) => {
    back = request.url().includes("?code=") ? request.url() : back;
  });
  // The code stays unused: the page that it comes back to does not hand it on.
  await other.route(/login\/provider\/finish/, (route) => route.abort());
  await loginThere(other, "boss");
  await expect.poll(() => back).toContain("code=");
  await page.goto(back);
  await expect(alert(page)).toContainText("begun elsewhere");
  await expect(views(page)).toHaveCount(0);
  await other.close();
});

test("a login that the person refuses is said", async ({ page }) => {
  await page.goto("/");
  await page.getByRole("button", { name: BUTTON }).click();
  await page.getByRole("link", { name: /cancel/i }).click();
  await expect(alert(page)).toContainText("access_denied");
});

test("the provider changes its keys, and logins go on", async ({ page }) => {
  await stop();
  await start();
  // Keys are asked for again at most every five seconds.
  await page.waitForTimeout(5_000);
  await loginThere(page, "guest");
  await expect(views(page)).toBeVisible();
});

test("a session outlives its provider", async ({ page }) => {
  await loginThere(page, "guest");
  await expect(views(page)).toBeVisible();
  await stop();
  await page.reload();
  await expect(views(page)).toBeVisible();
});
