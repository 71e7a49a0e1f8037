import AxeBuilder from "@axe-core/playwright";
import { expect, test, type CDPSession, type Page } from "@playwright/test";

/** A service with the people "keys" and "boss", whose page browsers open at this address. */
const URL_OF_STAFF = process.env["WIRESPOOL_STAFFED"] ?? "";
const PASSWORD = "correct horse battery";

test.use({ baseURL: URL_OF_STAFF });
// One account, step by step.
test.describe.configure({ mode: "serial" });

test.beforeAll(() => {
  test.skip(URL_OF_STAFF === "", "not run: WIRESPOOL_STAFFED is not set");
});

const alert = (page: Page) => page.getByRole("alert").filter({ hasText: /\S/ });
const views = (page: Page) => page.getByRole("navigation", { name: "Views" });
const keys = (page: Page) => page.getByRole("region", { name: "Keys" });

/** What the browser of one test knows of its key, for the next one. */
interface Credential {
  credentialId: string;
  isResidentCredential: boolean;
  privateKey: string;
  rpId?: string;
  signCount: number;
}
let credential: Credential = {
  credentialId: "",
  isResidentCredential: false,
  privateKey: "",
  signCount: 0,
};
let recovery: string[] = [];

/** A key of the browser, as the DevTools protocol makes them up. */
class MadeUpKey {
  private constructor(
    private readonly session: CDPSession,
    private readonly id: string,
  ) {}

  static async in(page: Page): Promise<MadeUpKey> {
    const session = await page.context().newCDPSession(page);
    await session.send("WebAuthn.enable");
    const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport: "usb",
        hasResidentKey: false,
        hasUserVerification: false,
        automaticPresenceSimulation: true,
      },
    });
    return new MadeUpKey(session, authenticatorId);
  }

  async remember(known: Credential): Promise<void> {
    await this.session.send("WebAuthn.addCredential", {
      authenticatorId: this.id,
      credential: known,
    });
  }

  async credentials(): Promise<Credential[]> {
    const { credentials } = await this.session.send("WebAuthn.getCredentials", {
      authenticatorId: this.id,
    });
    return credentials;
  }
}

async function login(page: Page, name = "keys") {
  await page.goto("/");
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
}

async function violations(page: Page): Promise<string[]> {
  const { violations: found } = await new AxeBuilder({ page }).analyze();
  return found.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.target.join(" ")}: ${node.failureSummary ?? ""}`),
  );
}

test("a key is registered, and ten codes with the first one", async ({ page }) => {
  const key = await MadeUpKey.in(page);
  await login(page);
  await page.getByRole("link", { name: "Account of keys" }).click();
  const form = keys(page);
  await expect(form).toContainText("You have none");
  expect(await violations(page)).toEqual([]);
  await form.getByLabel("Name of the new key").fill("the blue one");
  await form.getByLabel("Your password").fill("something else");
  await form.getByRole("button", { name: "Add a key" }).click();
  await expect(form.getByRole("alert")).toContainText("Name or password is wrong");
  await form.getByLabel("Your password").fill(PASSWORD);
  await form.getByRole("button", { name: "Add a key" }).click();
  await expect(form.getByRole("status")).toContainText('The key "the blue one" is registered');
  const codes = form.getByRole("list", { name: "Recovery codes" }).getByRole("listitem");
  await expect(codes).toHaveCount(10);
  recovery = await codes.allTextContents();
  await expect(form.getByRole("list", { name: "Your keys" })).toContainText("the blue one");
  expect(await violations(page)).toEqual([]);
  const made = await key.credentials();
  expect(made).toHaveLength(1);
  credential = { ...credential, ...made[0] };
  expect(credential.rpId).toBe("localhost");
});

test("the key logs in, and another one does not", async ({ page }) => {
  const key = await MadeUpKey.in(page);
  await login(page);
  await expect(page.getByText("Now the second factor")).toBeVisible();
  expect(await violations(page)).toEqual([]);
  await page.getByRole("button", { name: "Use your key" }).click();
  // The browser has another key in its port, which knows nothing.
  await expect(alert(page)).toContainText("No key was touched in time");
  await key.remember(credential);
  await page.getByRole("button", { name: "Use your key" }).click();
  await expect(views(page)).toBeVisible();
  const [used] = await key.credentials();
  expect(used?.signCount).toBeGreaterThan(credential.signCount);
});

test("a copy of the key with an older counter is refused", async ({ page }) => {
  const key = await MadeUpKey.in(page);
  await key.remember({ ...credential, signCount: 0 });
  await login(page);
  const answer = page.waitForResponse(
    (response) => response.url().endsWith("/login") && response.status() === 401,
  );
  await page.getByRole("button", { name: "Use your key" }).click();
  await answer;
  await expect(alert(page)).toContainText("its counter went back");
  await expect(views(page)).toHaveCount(0);
});

test("what a key has signed counts once, and not for another login", async ({ page }) => {
  const key = await MadeUpKey.in(page);
  await key.remember({ ...credential, signCount: 100 });
  const bodies: string[] = [];
  page.on("request", (request) => {
    const body = request.postData() ?? "";
    if (request.url().endsWith("/api/v1/login") && body.includes("signature")) {
      bodies.push(body);
    }
  });
  await login(page);
  await page.getByRole("button", { name: "Use your key" }).click();
  await expect(views(page)).toBeVisible();
  const [sent = ""] = bodies;
  const headers = { "X-Wirespool": "1", "Content-Type": "application/json" };
  const again = await page.request.post("/api/v1/login", { headers, data: sent });
  expect(again.status()).toBe(401);
  expect(await again.text()).toContain("wrong-key");
  const changed = JSON.parse(sent) as { name: string };
  changed.name = "boss";
  const other = await page.request.post("/api/v1/login", { headers, data: changed });
  // She has no second factor: the password is right, and nothing else is asked.
  expect(other.status()).toBe(200);
});

test("a lost key is replaced by one of the ten codes", async ({ page }) => {
  await login(page);
  await page.getByLabel("Code").fill("123456");
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await expect(alert(page)).toContainText("The code is wrong");
  await page.getByLabel("Code").fill(recovery[0] ?? "");
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await expect(views(page)).toBeVisible();
});

test("the key proves a change of the account, and is removed", async ({ page }) => {
  const key = await MadeUpKey.in(page);
  await key.remember({ ...credential, signCount: 200 });
  await login(page);
  await page.getByRole("button", { name: "Use your key" }).click();
  await expect(views(page)).toBeVisible();
  await page.goto("/#/account");
  const form = keys(page);
  // The same key is no second one.
  await form.getByLabel("Your password").fill(PASSWORD);
  await form.getByLabel("Name of the new key").fill("again");
  await form.getByRole("button", { name: "Add a key" }).click();
  await expect(form.getByRole("alert")).toContainText("registered already");
  await form.getByLabel("Your password").fill(PASSWORD);
  await form.getByRole("button", { name: "Remove the blue one" }).click();
  await expect(form.getByRole("status")).toContainText("counts no more");
  await expect(form).toContainText("You have none");
  await page.getByRole("button", { name: "Log out" }).click();
  await login(page);
  await expect(views(page)).toBeVisible();
});

test("the page says where keys work", async ({ page }) => {
  await page.goto(URL_OF_STAFF.replace("localhost", "127.0.0.1"));
  await page.getByLabel("Name").fill("keys");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await page.getByRole("link", { name: "Account of keys" }).click();
  await expect(page.getByTestId("keys-missing")).toContainText(`Keys work at ${URL_OF_STAFF}`);
  await expect(keys(page).getByRole("button", { name: "Add a key" })).toBeDisabled();
});

for (const [theme, width] of [
  ["light", 1400],
  ["dark", 400],
] as const) {
  test(`axe finds nothing at keys, ${theme}, ${width} wide`, async ({ page }) => {
    await page.setViewportSize({ width, height: 900 });
    await page.addInitScript((name) => localStorage.setItem("wirespool.theme", name), theme);
    await login(page);
    await expect(views(page)).toBeVisible();
    await page.goto("/#/account");
    await expect(keys(page)).toBeVisible();
    expect(await violations(page)).toEqual([]);
  });
}
