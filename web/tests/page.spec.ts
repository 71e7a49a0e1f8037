import { expect, test, type Page } from "@playwright/test";

/** A recorder that serves a volume with sessions, and a token with all scopes. */
const TOKEN = process.env["WIRESPOOL_TOKEN"] ?? "";

async function login(page: Page) {
  await page.goto("/");
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
}

async function openSessions(page: Page, parameters = "t=all") {
  await login(page);
  await page.goto(`/#/sessions?${parameters}`);
  await expect(page.getByRole("gridcell").first()).toBeVisible();
}

/** Waits until a packet or a part of the stream is there, in a session with packets. */
async function openDetail(page: Page, tab: string) {
  await openSessions(page, "t=all&q=tcp");
  await page.getByRole("row").nth(1).click();
  await page.getByRole("tab", { name: tab }).click();
}

test.beforeEach(({ page }) => {
  page.on("pageerror", (error) => {
    throw error;
  });
});

test("a wrong token is refused, a right one logs in and out", async ({ page }) => {
  await page.goto("/");
  await page.getByLabel("Token").fill("wirespool_wrong");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("alert").filter({ hasText: "not valid" })).toBeVisible();
  await login(page);
  await page.getByRole("button", { name: "Log out" }).click();
  await expect(page.getByLabel("Token")).toBeVisible();
});

test("a link with a token logs in, and the token leaves the address", async ({ page }) => {
  await page.goto(`/#token=${TOKEN}`);
  await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
  expect(page.url()).not.toContain(TOKEN);
});

test("the overview says whether everything is recorded", async ({ page }) => {
  await login(page);
  await expect(page.getByRole("heading", { level: 1 })).not.toBeEmpty();
  await expect(page.getByRole("article").first()).toContainText("Members");
});

test("a query is asked, is in the address, and back undoes it", async ({ page }) => {
  await openSessions(page);
  const query = page.getByRole("combobox", { name: "Query" });
  await query.fill("tcp");
  await query.press("Enter");
  await expect(page).toHaveURL(/q=tcp/);
  await expect(page.getByRole("gridcell", { name: "tcp", exact: true }).first()).toBeVisible();
  await expect(page.getByLabel("What is missing from this answer")).toContainText(
    /complete|incomplete|unknown/,
  );
  await page.goBack();
  await expect(query).toHaveValue("");
});

test("fields are completed", async ({ page }) => {
  await openSessions(page);
  const query = page.getByRole("combobox", { name: "Query" });
  await query.click();
  await query.pressSequentially("resp_por");
  const suggestions = page.getByRole("listbox", { name: "Suggestions" });
  await expect(suggestions.getByRole("option").first()).toContainText("resp_port");
  await query.press("Tab");
  await expect(query).toHaveValue("resp_port ");
});

test("the wrong word of a query is underlined, with a suggestion", async ({ page }) => {
  await openSessions(page);
  const query = page.getByRole("combobox", { name: "Query" });
  await query.fill("tcp and hots 10.0.0.1");
  await query.press("Enter");
  await expect(page.getByTestId("wrong-place")).toHaveText("hots");
  await expect(page.getByLabel("What is missing from this answer")).toHaveCount(0);
  await page.getByRole("button", { name: /^Use/ }).click();
  await expect(query).toHaveValue("tcp and host 10.0.0.1");
});

test("a value includes, and a second button excludes", async ({ page }) => {
  await openSessions(page);
  const facet = page.getByRole("region", { name: "app", exact: true });
  await facet.getByRole("button", { name: /^Without/ }).first().click();
  await expect(page).toHaveURL(/q=not/);
  await page.goBack();
  await facet.getByRole("listitem").first().getByRole("button").first().click();
  await expect(page.getByRole("combobox", { name: "Query" })).toHaveValue(/^app/);
});

test("a brush over the timeline bounds the times", async ({ page }) => {
  await openSessions(page);
  const plot = page.locator(".u-over").first();
  const box = await plot.boundingBox();
  expect(box).not.toBeNull();
  const { x, y, width, height } = box ?? { x: 0, y: 0, width: 0, height: 0 };
  await page.mouse.move(x + width * 0.3, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.7, y + height / 2, { steps: 5 });
  await page.mouse.up();
  await expect(page).toHaveURL(/t=\d+%2F\d+/);
  await expect(page.getByRole("button", { name: "Zoom out" })).toBeVisible();
});

test("keys brush over the timeline", async ({ page }) => {
  await openSessions(page);
  const time = page.getByRole("slider", { name: /^Time/ });
  await time.focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  await page.keyboard.press("PageUp");
  await page.keyboard.press("Shift+ArrowRight");
  await expect(time).toHaveAttribute("aria-valuetext", / to /);
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/t=\d+%2F\d+/);
});

test("a column has the recorder sort all that match, and counts them", async ({ page }) => {
  // A first answer of five: more are there, and are asked for on demand.
  await openSessions(page);
  await page.route("**/api/v1/sessions?*sort=*", async (route) => {
    const url = route.request().url().replace(/limit=1000$/, "limit=5");
    await route.fulfill({ response: await route.fetch({ url }) });
  });
  await page.getByRole("columnheader", { name: "Bytes" }).getByRole("button").click();
  await expect(page).toHaveURL(/sort=-bytes/);
  await expect(page.getByRole("columnheader", { name: "Bytes" })).toHaveAttribute(
    "aria-sort",
    "descending",
  );
  const said = page.getByText(/^Of all that match, the [^.]*with the\s+largest bytes/);
  await expect(said).toContainText("the 5 with");
  await page.getByRole("button", { name: /^Show 10/ }).click();
  await expect(said).not.toContainText("the 5 with");
  await page.getByRole("button", { name: "Newest first" }).click();
  await expect(said).toBeHidden();
});

test("a query is copied as a command of curl", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await openSessions(page, "t=all&q=tcp");
  await page.getByText("Copy \u25be").click();
  await page.getByRole("button", { name: "curl of packets" }).click();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  expect(text).toContain('curl -f -H "Authorization: Bearer $TOKEN" ');
  expect(text).toContain("/api/v1/extract?query=tcp");
});

test("keys move between rows and open one", async ({ page }) => {
  await openSessions(page);
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await expect(page.getByRole("row", { selected: true })).toHaveAttribute("aria-rowindex", "2");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/#\/session\//);
});

test("the table holds only the rows that are seen", async ({ page }) => {
  await openSessions(page);
  await page.getByRole("grid").evaluate((grid) => grid.scrollTo({ top: 1e6 }));
  expect(await page.getByRole("row").count()).toBeLessThan(120);
});

test("a session shows fields, packets and bytes", async ({ page }) => {
  await openDetail(page, "Packets");
  await expect(page.getByRole("heading", { name: "Originator \u2192" })).toBeVisible();
  await expect(page.getByRole("table", { name: "Bytes of the packet" })).toContainText("0000");
});

test("tshark decodes packets, and bytes of a field are marked", async ({ page }) => {
  test.skip(process.env["WIRESPOOL_TSHARK"] === undefined, "tshark is not installed");
  await openDetail(page, "Packets");
  await page.getByRole("button", { name: "Decode by tshark" }).click();
  await expect(page).toHaveURL(/decode=tshark/);
  const tree = page.getByRole("list", { name: "Fields, as tshark decodes them" });
  await expect(tree).toContainText("Transmission Control Protocol, Src Port:");
  await tree.getByText(/^Internet Protocol Version/).click();
  await tree.getByRole("button", { name: /^(Time to Live|Hop Limit)/ }).focus();
  const bytes = page.getByRole("table", { name: "Bytes of the packet" });
  await expect(bytes.locator(".hex .chosen")).toHaveCount(1);
  // As tshark writes it, and the recorder's own summary does not.
  const list = page.getByRole("group", { name: "Packets" });
  await expect(list).toContainText(/Seq=\d+ Ack=\d+ Win=\d+ Len=\d+/);
  await page.getByRole("button", { name: "Decode by tshark" }).click();
  await expect(tree).toHaveCount(0);
  await expect(page.getByRole("list", { name: "Fields of the headers" })).toBeVisible();
});

test("fields of another packet than the one that is shown are refused", async ({ page }) => {
  test.skip(process.env["WIRESPOOL_TSHARK"] === undefined, "tshark is not installed");
  const xml = `<packet><proto name="geninfo"><field name="timestamp" value="1.5"/></proto>
    <proto name="x" showname="Of another packet" size="1" pos="0"/></packet>`;
  await page.route("**/api/v1/decode?*packet=*", async (route) => {
    const answer = (await (await route.fetch()).json()) as object;
    await route.fulfill({ json: { ...answer, xml } });
  });
  await openDetail(page, "Packets");
  await page.getByRole("button", { name: "Decode by tshark" }).click();
  await expect(page.getByText("The ring has gone on")).toBeVisible();
  await expect(page.getByText("Of another packet")).toHaveCount(0);
});

test("a session of TCP is plotted by sequence number", async ({ page }) => {
  await openDetail(page, "Sequence");
  const plot = page.getByRole("region", { name: "\u2192 Originator sends" });
  await expect(plot).toContainText("bytes sent");
  await expect(page.getByRole("region", { name: "\u2190 Responder sends" })).toBeVisible();
});

test("a stream is followed, as text and as hex", async ({ page }) => {
  await openDetail(page, "Follow stream");
  await expect(page.getByRole("log", { name: "Stream" })).not.toBeEmpty();
  await page.getByRole("button", { name: "Hex" }).click();
  await expect(page.getByRole("button", { name: "Hex" })).toHaveAttribute("aria-pressed", "true");
});

test("a download of packets begins", async ({ page }) => {
  await openDetail(page, "Fields");
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download pcapng" }).click();
  expect((await download).suggestedFilename()).toMatch(/\.pcapng$/);
});

test("talkers group sessions by any field", async ({ page }) => {
  await login(page);
  await page.goto("/#/talkers?t=all");
  await expect(page.getByRole("region", { name: "By orig_ip" })).toContainText("Sessions");
  await page.getByLabel("Group by").selectOption("state");
  await expect(page.getByRole("region", { name: "By state" })).toBeVisible();
});

test("keys move between talkers", async ({ page }) => {
  await login(page);
  await page.goto("/#/talkers?t=all");
  const links = page.getByRole("region", { name: "By orig_ip" }).getByRole("link");
  await expect(links.first()).toBeVisible();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await expect(links.nth(1)).toBeFocused();
  await page.keyboard.press("k");
  await expect(links.first()).toBeFocused();
});

test("two times are compared, and both have a statement", async ({ page }) => {
  await login(page);
  await page.goto("/#/talkers?t=1h&field=resp_port");
  await page.getByLabel("Compare with").selectOption("1d");
  await expect(page).toHaveURL(/versus=1d/);
  await expect(page.getByRole("region", { name: "By resp_port" })).toContainText("Difference");
  await expect(page.getByLabel("What is missing from this answer")).toHaveCount(2);
});

test("a recorder that is gone has a banner, and comes back by itself", async ({ page }) => {
  await login(page);
  await expect(page.getByRole("article").first()).toBeVisible();
  await page.route("**/api/**", (route) => route.abort());
  await expect(page.getByText("The recorder does not answer since")).toBeVisible();
  await page.unroute("**/api/**");
  await expect(page.getByText("The recorder does not answer since")).toBeHidden();
});

test("the page asks no other host and breaks no security policy", async ({ page, baseURL }) => {
  const strange: string[] = [];
  page.on("request", (request) => {
    if (baseURL && !request.url().startsWith(baseURL) && !request.url().startsWith("blob:")) {
      strange.push(request.url());
    }
  });
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) {
      strange.push(message.text());
    }
  });
  await openSessions(page);
  for (const view of ["overview", "talkers?t=all", "dns?t=all", "storage"]) {
    await page.goto(`/#/${view}`);
    await expect(page.locator("main")).not.toBeEmpty();
  }
  expect(strange).toEqual([]);
});
