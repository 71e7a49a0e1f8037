import { describe, expect, it } from "vitest";
import { nextSorting, sortingOf, sortWord } from "./sort";

describe("sorting", () => {
  it("goes from descending to ascending to the order of time", () => {
    expect(nextSorting("", "bytes")).toBe("-bytes");
    expect(nextSorting("-bytes", "bytes")).toBe("bytes");
    expect(nextSorting("bytes", "bytes")).toBe("");
    expect(nextSorting("-bytes", "app")).toBe("-app");
  });

  it("is asked of the recorder in its own words", () => {
    expect(sortWord(sortingOf("-bytes"))).toBe("bytes:desc");
    expect(sortWord(sortingOf("orig"))).toBe("orig_ip");
    expect(sortWord(sortingOf("oldest"))).toBe("");
    expect(sortWord(sortingOf(""))).toBe("");
  });
});
