import { describe, expect, it } from "vitest";
import { bytesOf, keysMissing, textOf } from "./keys";

describe("base 64 for URLs", () => {
  it("has no padding, and letters that need no escape", () => {
    const bytes = Uint8Array.from([0xfb, 0xff, 0xfe, 0]);
    expect(textOf(bytes.buffer)).toBe("-__-AA");
    expect([...bytesOf("-__-AA")]).toEqual([...bytes]);
    expect(textOf(new Uint8Array().buffer)).toBe("");
  });
});

describe("where keys work", () => {
  it("is the address of the page that the service knows", () => {
    expect(keysMissing("https://a.example", "https://a.example")).toBeNull();
    expect(keysMissing("https://a.example", "https://b.example")).toContain("https://a.example");
    expect(keysMissing(null, "https://b.example")).toContain("--public-url");
  });
});
