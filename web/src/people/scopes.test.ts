import { describe, expect, it } from "vitest";
import { expiryAfter } from "./scopes";

describe("the end of a token", () => {
  it("is a time without fractions", () => {
    expect(expiryAfter(7, 1_700_000_000_123)).toBe("2023-11-21T22:13:20Z");
  });
});
