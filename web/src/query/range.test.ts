import { expect, it } from "vitest";
import { absolute, absoluteWord, boundsOf, condition, within } from "./range";

it("relative ranges count from now", () => {
  expect(condition("15m")).toBe("since 15m ago");
  expect(condition("all")).toBe("");
  expect(condition("")).toBe("");
  expect(condition("1h or port 53")).toBe("");
});

it("absolute ranges survive the address without an exponent", () => {
  const word = absoluteWord(1.7e18, 1.8e18 + 0.5);
  expect(word).toMatch(/^1700000000000000000\/\d+$/);
  expect(absolute(word)?.fromNs).toBe(1.7e18);
  expect(condition(word)).toMatch(/^after 2023-11-14T22:13:20Z and before /);
});

it("a range has two ends, or is all times", () => {
  expect(boundsOf("15m", 1000e9)).toEqual({ fromNs: 100e9, toNs: 1000e9 });
  expect(boundsOf("1/2", 0)).toEqual({ fromNs: 1, toNs: 2 });
  expect(boundsOf("all", 0)).toBeNull();
});

it("a range is appended, so that places in the query stay", () => {
  expect(within("port 53", "1h")).toBe("port 53 and since 1h ago");
  expect(within("", "1h")).toBe("since 1h ago");
  expect(within("port 53", "all")).toBe("port 53");
});
