import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "tests",
  workers: 2,
  fullyParallel: true,
  timeout: 40_000,
  use: {
    baseURL: process.env["WIRESPOOL_URL"] ?? "http://127.0.0.1:8420",
    viewport: { width: 1400, height: 900 },
    launchOptions: {
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      args: ["--no-sandbox"],
    },
  },
});
