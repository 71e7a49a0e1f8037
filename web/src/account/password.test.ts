import { describe, expect, it } from "vitest";
import { lengthOf } from "./password";

describe("the length of a password", () => {
  it("counts characters, however they are composed", () => {
    expect(lengthOf("")).toBe(0);
    expect(lengthOf("a\u0308")).toBe(1);
    expect(lengthOf("\u00e4")).toBe(1);
    expect(lengthOf("\u{1f600}x")).toBe(2);
  });
});
