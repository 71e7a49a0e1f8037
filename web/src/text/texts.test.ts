import { describe, expect, it } from "vitest";
import { byteRate, bytes, compact, grouped, percent, plural, share } from "./numbers";
import { ago, clock, dateTime, duration, isoUtc, nsOfText } from "./times";

const plain = (text: string) => text.replace(/\u202f/g, " ");
const NOON = 1_795_176_000_123_456_000;

describe("numbers", () => {
  it("have narrow blanks between thousands", () => {
    expect(plain(grouped(0))).toBe("0");
    expect(plain(grouped(999))).toBe("999");
    expect(plain(grouped(1_234_567))).toBe("1 234 567");
    expect(plain(plural(1, "packet"))).toBe("1 packet");
    expect(plain(plural(2000, "packet"))).toBe("2 000 packets");
  });

  it("have units", () => {
    expect(plain(bytes(512))).toBe("512 B");
    expect(plain(bytes(1536))).toBe("1.50 KiB");
    expect(plain(bytes(150 * 2 ** 30))).toBe("150 GiB");
    expect(plain(byteRate(1_900_000_000))).toBe("1.90 GB/s");
    expect(plain(compact(16_499_184_622))).toBe("16.5 G");
    expect(plain(compact(7))).toBe("7");
  });

  it("are shares of a whole, also of nothing", () => {
    expect(percent(1, 3)).toBe("33 %");
    expect(percent(1, 200)).toBe("0.5 %");
    expect(percent(1, 0)).toBe("0 %");
    expect(share(5, 10)).toBe("50.00%");
    expect(share(5, 0)).toBe("0%");
    expect(share(20, 10)).toBe("100.00%");
  });
});

describe("times", () => {
  it("are shown in UTC", () => {
    expect(dateTime(NOON, "utc")).toBe("2026-11-20 12:00:00.123");
    expect(dateTime(NOON, "utc", 0)).toBe("2026-11-20 12:00:00");
    expect(clock(NOON, "utc", 6)).toBe("12:00:00.123456");
  });

  it("are written as queries take them", () => {
    expect(isoUtc(1_795_176_000e9)).toBe("2026-11-20T12:00:00Z");
    expect(isoUtc(NOON)).toBe("2026-11-20T12:00:00.123456Z");
  });

  it("are read as somebody writes them", () => {
    expect(nsOfText("2026-11-20 12:00:00", "utc")).toBe(1_795_176_000e9);
    expect(nsOfText("2026-11-20T12:00Z", "local")).toBe(1_795_176_000e9);
    expect(nsOfText("2026-11-20", "utc")).toBe(1_795_132_800e9);
    expect(nsOfText("2026-11-20 12:00:00.25", "utc")).toBe(1_795_176_000.25e9);
    expect(nsOfText("yesterday", "utc")).toBeNull();
    const local = dateTime(NOON, "local", 0);
    expect(nsOfText(local, "local")).toBe(1_795_176_000e9);
  });

  it("have a length in two or three digits", () => {
    expect(duration(0)).toBe("0 ns");
    expect(duration(900)).toBe("900 ns");
    expect(duration(31_000)).toBe("31 \u00b5s");
    expect(duration(1_500_000_000)).toBe("1.5 s");
    expect(duration(90e9)).toBe("1.5 min");
    expect(duration(5.4 * 86_400e9)).toBe("5.4 d");
    expect(duration(200 * 86_400e9)).toBe("200 d");
  });

  it("lie before or behind now", () => {
    expect(ago(0, 3e9)).toBe("3 s ago");
    expect(ago(3e9, 0)).toBe("in 3 s");
  });
});
