import { describe, expect, it } from "vitest";
import { expiryAfter, isOver } from "./scopes";

describe("the end of a token", () => {
  it("is a time without fractions", () => {
    expect(expiryAfter(7, 1_700_000_000_123)).toBe("2023-11-21T22:13:20Z");
  });

  it("is over at its moment, and never without one", () => {
    const end = Date.parse("2023-11-21T22:13:20Z");
    expect([end - 1, end].map((now) => isOver("2023-11-21T22:13:20.000000000Z", now))).toEqual([
      false,
      true,
    ]);
    expect(isOver(null, end)).toBe(false);
  });
});
