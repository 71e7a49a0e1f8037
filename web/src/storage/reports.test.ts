import { describe, expect, it } from "vitest";
import { change, joined, measured } from "./reports";

const report = (said: unknown) => ({ file: "a.json", id: "1", is_of_volume: true, report: said });

describe("a report of qualify", () => {
  it("has rates over the surface and by packet buffer", () => {
    const read = measured(
      report({
        guaranteed_bytes_per_s: 7,
        target: { path: "/dev/sda" },
        verdict: { pool_bytes: 1024 },
        parts: [
          { part: "sweep", steps: [{ offset: 0, bytes: 100, ns: 1e9 }, { offset: 9 }, 3] },
          { part: "ring", curve: [{ pool_bytes: 1, bytes_per_s: 2 }] },
        ],
      }),
    );
    expect(read).toMatchObject({ guaranteed: 7, target: "/dev/sda", poolBytes: 1024, mean: null });
    expect(read.surface).toEqual([{ offset: 0, rate: 100 }]);
    expect(read.pools).toEqual([{ bytes: 1, rate: 2 }]);
  });

  it("is no error where it is no report", () => {
    for (const wrong of [null, 3, [], { parts: 7 }, { parts: [null], target: "x" }]) {
      expect(measured(report(wrong))).toMatchObject({ guaranteed: null, surface: [], pools: [] });
    }
  });

  it("is set beside another one", () => {
    const lists = [[{ at: 1, rate: 10 }], [{ at: 2, rate: 20 }, { at: 1, rate: 5 }]];
    expect(joined(lists, ({ at }) => at)).toEqual([[1, 2], [10, null], [5, 20]]);
    expect([change(100, 90), change(100, 110), change(100, 100), change(null, 1)]).toEqual([
      "\u221210.0 %",
      "+10.0 %",
      "0.0 %",
      "not known",
    ]);
  });
});
