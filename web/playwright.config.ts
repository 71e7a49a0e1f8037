import { defineConfig } from "@playwright/test";
import { existsSync } from "node:fs";

const chromium = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const firefox = process.env["FIREFOX"] ?? "/usr/bin/firefox-esr";

/** Only Chromium has authenticators that are made up. */
const KEYS = "keys.spec.ts";

export default defineConfig({
  testDir: "tests",
  workers: 2,
  fullyParallel: true,
  // Others build and test on this machine, too.
  timeout: 120_000,
  expect: { timeout: 20_000 },
  use: {
    baseURL: process.env["WIRESPOOL_URL"] ?? "http://127.0.0.1:8420",
    viewport: { width: 1400, height: 900 },
  },
  projects: [
    {
      name: "chromium",
      use: {
        browserName: "chromium" as const,
        launchOptions: { executablePath: chromium, args: ["--no-sandbox"] },
      },
    },
    {
      name: "firefox",
      testIgnore: KEYS,
      use: {
        browserName: "firefox" as const,
        // As the distribution has it, by WebDriver BiDi: no build of Playwright's own.
        channel: "moz-firefox",
        launchOptions: { executablePath: firefox },
      },
    },
  ].filter(({ name }) => name !== "firefox" || existsSync(firefox)),
});
