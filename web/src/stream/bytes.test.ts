import { expect, it } from "vitest";
import { fromBase64, hexDump, hexRows, narrowest, readable } from "./bytes";
import { endpoint, segmentOf } from "./segment";

const bytes = (text: string) => new TextEncoder().encode(text);

it("reads base64", () => {
  expect([...fromBase64("AAH/")]).toEqual([0, 1, 255]);
});

it("dumps bytes as hex and ASCII", () => {
  expect(hexDump(bytes("GET /\r\n"))).toBe(
    "0000  47 45 54 20 2f 0d 0a                             GET /..",
  );
  expect(hexRows(new Uint8Array(40), 20)).toHaveLength(2);
  expect(hexRows(new Uint8Array(40), 20)[1]?.bytes).toHaveLength(4);
});

it("shows no control or direction marks", () => {
  expect(readable(bytes("a\u001b[31m\r\nb\u202ec\t\u0000"))).toBe("a.[31m\nb.c\t.");
  expect(readable(bytes("Gr\u00fc\u00dfe \u2603"))).toBe("Gr\u00fc\u00dfe \u2603");
});

it("leaves padding out of a payload", () => {
  const packet = {
    number: 1,
    time_ns: 0,
    length: 60,
    captured: 60,
    source: "10.0.0.1:1",
    destination: "10.0.0.2:2",
    protocol: "TCP",
    info: "",
    payload_at: 2,
    payload_len: 1,
    seq: 7,
    flags: 18,
    data: "AAAhAAAA",
  };
  const segment = segmentOf(packet, true);
  expect([...segment.payload]).toEqual([0x21]);
  expect(segment).toMatchObject({ sequence: 7, isSyn: true, isFin: false, length: 1 });
});

it("writes ends as packets have them", () => {
  expect(endpoint("10.0.0.1", 80)).toBe("10.0.0.1:80");
  expect(endpoint("::1", 53)).toBe("[::1]:53");
  expect(endpoint("::1", undefined)).toBe("::1");
});

it("finds the narrowest of what has a byte", () => {
  const spans = [{ from: 0, to: 9 }, { from: 2, to: 4 }, { from: 2, to: 4 }, { from: 5, to: 6 }];
  expect(narrowest(spans, 3)).toBe(spans[1]);
  expect(narrowest(spans, 8)).toBe(spans[0]);
  expect(narrowest(spans, 9)).toBeNull();
});
