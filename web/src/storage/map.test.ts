import { describe, expect, it } from "vitest";
import type { RingCell, RingMapAnswer } from "../api/types";
import { layout, shadeOf, wordsOf, zoneRows } from "./map";

const cell = (place: number, zone: number, more: Partial<RingCell> = {}): RingCell => ({
  place,
  slots: 2,
  zone,
  content: "written",
  ...more,
});

const map = (cells: RingCell[]): RingMapAnswer => ({
  volume_id: "v",
  zones: 2,
  slots: 10,
  columns: 2,
  slots_per_cell: 2,
  sampled_every: 2,
  segments: 1,
  written_ns: [],
  members: [],
  cells,
});

describe("the ring over the surface", () => {
  it("has rows of cells, and each zone begins a new one", () => {
    const { placed, width, height } = layout(map([cell(0, 0), cell(2, 0), cell(4, 0), cell(6, 1)]));
    expect(placed.map(({ x, y }) => [x, y])).toEqual([[0, 0], [10, 0], [0, 10], [0, 25]]);
    expect([width, height]).toEqual([20, 35]);
    expect(layout(map([])).height).toBe(0);
  });

  it("has a colour for what a cell holds, and for its age", () => {
    expect(shadeOf(cell(0, 0, { age: 3 }))).toBe("age3");
    expect(shadeOf(cell(0, 0))).toBe("age9");
    expect(shadeOf(cell(0, 0, { content: "ahead_of_head" }))).toBe("ahead");
    expect(shadeOf(cell(0, 0, { content: "damaged" }))).toBe("damaged");
  });

  it("is said in words, and as a table", () => {
    const damaged = cell(4, 1, { head: true, holds: 1, damaged_members: [2], sequence: 7, age: 0 });
    expect(wordsOf(damaged, 2)).toBe(
      "Zone 1, slots 4 to 5; stripes; stripe 7; " +
        "in tenth 1 of 10 by age, the first is the newest; the head; packets of 1 hold; " +
        "not shown by member 2",
    );
    const unwritten = cell(2, 0, { content: "unwritten" });
    const [first, second] = zoneRows(map([cell(0, 0), unwritten, damaged]));
    expect(first).toMatchObject({ zone: 0, cells: 2, written: 1, unwritten: 1, hasHead: false });
    expect(second).toMatchObject({ zone: 1, cells: 1, damaged: 1, holds: 1, hasHead: true });
  });
});
