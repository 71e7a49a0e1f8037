import { expect, it } from "vitest";
import { brief, printable, printableAll } from "./printable";

it("text of others cannot hide or change direction", () => {
  expect(printable("a\u001b[2Jb\u202ec\u200bd\n")).toBe("a\\u{1b}[2Jb\\u{202e}c\\u{200b}d\\u{a}");
  expect(printable("Gr\u00fc\u00dfe \u2603 <b>")).toBe("Gr\u00fc\u00dfe \u2603 <b>");
});

it("answers that are only shown are printable in each of their texts", () => {
  const answer = { a: ["x\u202e", { b: "\u200b", n: 1 }], none: null, yes: true };
  expect(printableAll(answer)).toEqual({
    a: ["x\\u{202e}", { b: "\\u{200b}", n: 1 }], none: null, yes: true,
  });
});

it("of a long text its beginning is shown, and how long it is", () => {
  expect(brief("b\u202e")).toBe("b\\u{202e}");
  const long = brief("a".repeat(65_536));
  expect(long).toMatch(/^a{1000}\u2026 \(65.536 characters\)$/);
});
