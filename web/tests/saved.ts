import type { Page } from "@playwright/test";
import { readFileSync } from "node:fs";

/** What a button saves. */
export async function saved(page: Page, press: () => Promise<void>): Promise<Buffer> {
  if (page.context().browser()?.browserType().name() === "firefox") {
    return handedOver(page, press);
  }
  const download = page.waitForEvent("download");
  await press();
  return readFileSync(await (await download).path());
}

/** Firefox saves the file, too, but WebDriver BiDi tells nothing of downloads from memory. */
async function handedOver(page: Page, press: () => Promise<void>): Promise<Buffer> {
  await page.evaluate(() => {
    const { click } = HTMLAnchorElement.prototype;
    const makeAddress = URL.createObjectURL.bind(URL);
    const blobs = new Map<string, Blob>();
    URL.createObjectURL = (blob: Blob) => {
      const address = makeAddress(blob);
      blobs.set(address, blob);
      return address;
    };
    HTMLAnchorElement.prototype.click = function (this: HTMLAnchorElement) {
      Object.assign(window, { handedOver: blobs.get(this.href) });
      click.call(this);
    };
  });
  await press();
  await page.waitForFunction(() => "handedOver" in window);
  const bytes = await page.evaluate(async () => {
    const { handedOver } = window as unknown as { handedOver: Blob };
    Reflect.deleteProperty(window, "handedOver");
    return [...new Uint8Array(await handedOver.arrayBuffer())];
  });
  return Buffer.from(bytes);
}
