import { describe, expect, it } from "vitest";
import { reduced, shades, stacked } from "./timeline";

describe("the stack of traffic", () => {
  it("fills buckets without traffic, and one on each side", () => {
    const traffic = {
      width_ns: 1e9,
      series: ["tls", "dns"],
      buckets: [
        [10e9, [5, 1]],
        [12e9, [2]],
      ] as [number, number[]][],
    };
    expect(stacked(traffic)).toEqual({
      atS: [9, 10, 11, 12, 13],
      sums: [
        [0, 5, 0, 2, 0],
        [0, 6, 0, 2, 0],
      ],
    });
  });

  it("of nothing is nothing", () => {
    expect(stacked({ width_ns: 1e9, series: [], buckets: [] }).atS).toEqual([]);
  });

  it("has the largest protocols, and the rest as one", () => {
    const series = Array.from({ length: 9 }, (_, index) => `p${index}`);
    const bytes = series.map((_, index) => index + 1);
    const { series: names, buckets } = reduced({ width_ns: 1, series, buckets: [[0, bytes]] });
    expect(names).toEqual(["p8", "p7", "p6", "p5", "p4", "p3", "p2", "others"]);
    expect(buckets[0]?.[1].at(-1)).toBe(3);
  });

  it("never ranks what the recorder has put together", () => {
    const series = ["p0", "p1", "p2", "p3", "p4", "p5", "http", "63 others"];
    const buckets = [[0, [9, 8, 7, 6, 5, 4, 3, 50]]] as [number, number[]][];
    const one = reduced({ width_ns: 1, series, others: 63, buckets });
    expect(one.series).toEqual(["p0", "p1", "p2", "p3", "p4", "p5", "http", "others"]);
    expect(one.buckets[0]?.[1]).toEqual([9, 8, 7, 6, 5, 4, 3, 50]);
  });
});

describe("the stack of values of a field", () => {
  it("has those without the field and all others last, with what selects each", () => {
    const one = reduced({
      width_ns: 1,
      series: ["others", "without sni", "others", "b"],
      queries: [null, "not has sni", "sni = others", "sni = b"],
      buckets: [[0, [9, 8, 2, 0]], [1, [1, 1, 1]]] as [number, number[]][],
    });
    expect(one.series).toEqual(["others", "without sni", "others"]);
    expect(one.queries).toEqual(["sni = others", "not has sni", null]);
    expect(one.buckets).toEqual([[0, [2, 8, 9]], [1, [1, 1, 1]]]);
  });
});

describe("shaded times", () => {
  it("are what a statement lists", () => {
    const found = shades({
      gaps: [{ cause: "crash", from_ns: 1e9, to_ns: 2e9 }],
      not_held: [{ to_ns: 5e9 }],
    });
    expect(found.map(({ kind, fromS, toS }) => [kind, fromS, toS])).toEqual([
      ["lost", -Infinity, 5],
      ["unknown", 1, 2],
    ]);
    expect(shades(undefined)).toEqual([]);
  });
});
