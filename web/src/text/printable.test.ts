import { expect, it } from "vitest";
import { printable } from "./printable";

it("text of others cannot hide or change direction", () => {
  expect(printable("a\u001b[2Jb\u202ec\u200bd\n")).toBe("a\\u{1b}[2Jb\\u{202e}c\\u{200b}d\\u{a}");
  expect(printable("Gr\u00fc\u00dfe \u2603 <b>")).toBe("Gr\u00fc\u00dfe \u2603 <b>");
});
