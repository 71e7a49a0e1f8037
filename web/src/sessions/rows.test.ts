import { describe, expect, it } from "vitest";
import { Rows } from "./rows";

const page = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => ({ session_id: `s${from + at}` }));

function tenPages(): Rows {
  const rows = new Rows();
  for (let at = 0; at < 10; at += 1) {
    rows.add(at === 0 ? null : `c${at}`, page(at * 5, 5));
  }
  return rows;
}

describe("rows of an answer", () => {
  it("are found by their number across pages", () => {
    const rows = tenPages();
    expect(rows.length).toBe(50);
    expect(rows.slice(3, 7).map((row) => row?.session_id)).toEqual(["s3", "s4", "s5", "s6"]);
    expect(rows.at(50)).toBeUndefined();
    expect(rows.slice(48, 90)).toHaveLength(2);
    expect(new Rows().at(0)).toBeUndefined();
  });

  it("far away are given up, and come back by their cursors", () => {
    const rows = tenPages();
    rows.keepAround(47, 20);
    expect(rows.kept).toHaveLength(20);
    expect([rows.at(0), rows.at(49)?.session_id]).toEqual([undefined, "s49"]);
    expect(rows.missing(30, 50)).toBeNull();
    expect(rows.missing(11, 50)).toMatchObject({ cursor: "c2", start: 10 });
    expect(rows.missing(2, 3)).toMatchObject({ cursor: null, start: 0 });
    rows.restore(10, page(10, 5));
    expect(rows.at(12)?.session_id).toBe("s12");
    rows.restore(10, page(90, 5));
    expect(rows.at(12)?.session_id).toBe("s12");
    rows.keepAround(0, 20);
    expect(rows.at(12)?.session_id).toBe("s12");
    expect(rows.at(49)).toBeUndefined();
    expect(rows.length).toBe(50);
  });

  it("that are overwritten meanwhile leave their places empty", () => {
    const rows = tenPages();
    rows.keepAround(49, 5);
    rows.restore(0, page(3, 2));
    expect(rows.slice(0, 5).map((row) => row?.session_id ?? "")).toEqual(["s3", "s4", "", "", ""]);
    expect(rows.missing(0, 5)).toBeNull();
  });
});
