import { expect, it } from "vitest";
import { correction } from "./correction";

const NOON_MS = Date.parse("2026-11-29T12:00:00Z");
const HOURS_MS = 3_600_000;

it("the time of the service counts where the browser's clock is wrong", () => {
  const said = "Sun, 29 Nov 2026 15:00:00 GMT";
  const behind = correction(0, said, NOON_MS);
  expect(behind).toBe(3 * HOURS_MS);
  expect(correction(0, said, NOON_MS + 5 * HOURS_MS)).toBe(-2 * HOURS_MS);
  // Answers that took a while change nothing, nor do those without a date.
  expect(correction(behind, "Sun, 29 Nov 2026 14:59:59 GMT", NOON_MS)).toBe(behind);
  expect(correction(behind, null, NOON_MS)).toBe(behind);
  expect(correction(behind, "no date", NOON_MS)).toBe(behind);
  // Somebody sets the browser's clock right.
  expect(correction(behind, said, NOON_MS + 3 * HOURS_MS)).toBe(0);
});
