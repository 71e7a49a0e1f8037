import { expect, it } from "vitest";
import { indexOfByte, markOf, mended } from "./mark";

it("places count bytes", () => {
  expect(indexOfByte("abc", 2)).toBe(2);
  expect(indexOfByte("\u00e4b\u2603c", 2)).toBe(1);
  expect(indexOfByte("\u00e4b\u2603c", 6)).toBe(3);
  expect(indexOfByte("abc", 99)).toBe(3);
});

it("the wrong word is marked", () => {
  const query = "app dns and hots 10.0.0.1";
  expect(markOf(query, { at: 12, shown: "" })).toEqual({ from: 12, to: 16 });
});

it("what is missing at the end marks the last letter", () => {
  expect(markOf("port", { at: 4, shown: "" })).toEqual({ from: 3, to: 4 });
  expect(markOf("", { at: 0, shown: "" })).toEqual({ from: 0, to: 1 });
});

it("a suggestion replaces the wrong word", () => {
  const wrong = { at: 0, suggestion: "host", shown: "" };
  expect(mended("hots 10.0.0.1", wrong)).toBe("host 10.0.0.1");
});
