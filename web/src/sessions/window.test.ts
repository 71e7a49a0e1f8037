import { describe, expect, it } from "vitest";
import { boxHeight, HIGHEST_PX, scrolledTo, topOf } from "./window";

const view = 600;
const start = { top: 0, virtual: 0 };

describe("a box of rows", () => {
  it("scrolls as any other while browsers can draw it", () => {
    const sizes = { total: 100_000, view };
    expect(scrolledTo(70_000, start, sizes)).toEqual({ top: 70_000, virtual: 70_000 });
    expect(topOf(1234, sizes)).toBe(1234);
  });

  it("of ten million rows is no higher than browsers draw", () => {
    const sizes = { total: 280e6, view };
    expect(boxHeight(sizes.total)).toBe(HIGHEST_PX);
    // A wheel goes on by what it says, a drag to its share, and the ends are the ends.
    expect(scrolledTo(100, start, sizes).virtual).toBe(100);
    const half = scrolledTo(HIGHEST_PX / 2, start, sizes);
    expect(half.virtual / sizes.total).toBeCloseTo(0.5, 3);
    expect(scrolledTo(half.top + 120, half, sizes).virtual - half.virtual).toBe(120);
    expect(scrolledTo(HIGHEST_PX - view, half, sizes).virtual).toBe(sizes.total - view);
    expect(scrolledTo(0, half, sizes).virtual).toBe(0);
    expect(topOf(half.virtual, sizes)).toBeCloseTo(half.top, 3);
  });

  it("that is higher than its rows does not move", () => {
    expect(scrolledTo(0, start, { total: 100, view })).toEqual({ top: 0, virtual: 0 });
    expect(topOf(50, { total: 100, view })).toBe(0);
  });
});
