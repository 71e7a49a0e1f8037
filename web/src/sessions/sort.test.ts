import { describe, expect, it } from "vitest";
import { column } from "./columns";
import { nextSorting, sorted, sortingOf } from "./sort";

const rows = [
  { session_id: "a", orig_ip: "10.0.0.10", orig_port: 1, orig_frame_bytes: 5 },
  { session_id: "b", orig_ip: "10.0.0.9", orig_port: 1, orig_frame_bytes: 50, sni: "x.example" },
  { session_id: "c", orig_ip: "10.0.0.9", orig_port: 2, orig_frame_bytes: 7 },
];
const ids = (name: string, isDescending: boolean) =>
  sorted(rows, column(name, undefined), isDescending)
    .map((row) => row.session_id)
    .join("");

describe("sorting of loaded rows", () => {
  it("compares numbers, also within addresses", () => {
    expect(ids("bytes", true)).toBe("bca");
    expect(ids("orig", false)).toBe("bca");
  });

  it("puts rows without a value last, both ways", () => {
    expect(ids("name", false)).toBe("bac");
    expect(ids("name", true)).toBe("bac");
    expect(ids("sni", true)).toBe("bac");
  });

  it("goes from descending to ascending to the order of time", () => {
    expect(nextSorting("", "bytes")).toBe("-bytes");
    expect(nextSorting("-bytes", "bytes")).toBe("bytes");
    expect(nextSorting("bytes", "bytes")).toBe("");
    expect(nextSorting("-bytes", "app")).toBe("-app");
  });

  it("leaves the order of time to the recorder", () => {
    expect(sortingOf("oldest")).toBeNull();
    expect(sortingOf("-bytes")).toEqual({ name: "bytes", isDescending: true });
  });
});
