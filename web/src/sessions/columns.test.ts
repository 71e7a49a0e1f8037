import { describe, expect, it } from "vitest";
import { column, DEFAULT_COLUMNS, leastWidth } from "./columns";

/** Of 1280 pixels, at 14 a rem, less the values, the gaps, the frame and a scroll bar. */
const BESIDE_VALUES_REM = 70;

describe("the columns that are shown at first", () => {
  it("fit beside the values on a screen of 1280 pixels", () => {
    const least = leastWidth(DEFAULT_COLUMNS.map((name) => column(name, undefined)));
    expect(parseFloat(least)).toBeLessThanOrEqual(BESIDE_VALUES_REM);
  });
});
