import { describe, expect, it } from "vitest";
import type { TopField } from "../api/types";
import { compared, rangesOf } from "./compare";

function field(amounts: Record<string, number>, distinct = Object.keys(amounts).length): TopField {
  const nothing = { sessions: 0, packets: 0, bytes: 0 };
  const values = Object.entries(amounts).map(([text, bytes]) => ({
    value: text, text, query: `app = ${text}`, sessions: 1, packets: 1, bytes,
  }));
  return { field: "app", distinct, absent: nothing, values };
}

describe("a comparison", () => {
  it("has two ranges of the same length", () => {
    const hour = 3_600e9;
    expect(rangesOf("1h", "1d", 30 * hour)).toEqual({
      now: { fromNs: 29 * hour, toNs: 30 * hour },
      then: { fromNs: 5 * hour, toNs: 6 * hour },
    });
    expect(rangesOf("100/160", "before", 0)?.then).toEqual({ fromNs: 40, toNs: 100 });
    expect(rangesOf("all", "1d", 0)).toBeNull();
    expect(rangesOf("1h", "", 0)).toBeNull();
  });

  it("has the largest differences first, and values of either range", () => {
    const rows = compared(field({ tls: 100, dns: 5 }), field({ tls: 90, ssh: 50 }), "bytes");
    expect(rows.map(({ text, difference }) => [text, difference])).toEqual([
      ["ssh", -50],
      ["tls", 10],
      ["dns", 5],
    ]);
  });

  it("does not take a value for absent that may only be small", () => {
    const rows = compared(field({ tls: 100 }), field({ ssh: 50 }, 9), "bytes");
    expect(rows).toContainEqual(
      { text: "tls", query: "app = tls", now: 100, then: null, difference: null },
    );
    expect(rows).toContainEqual(
      { text: "ssh", query: "app = ssh", now: 0, then: 50, difference: -50 },
    );
  });
});
