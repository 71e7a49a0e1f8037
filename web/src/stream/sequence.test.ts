import { describe, expect, it } from "vitest";
import type { Packet } from "../api/types";
import { direction, scalesOf } from "./sequence";

let number = 0;
function packet(source: string, part: Partial<Packet>): Packet {
  number += 1;
  return {
    number, time_ns: number, length: 60, captured: 60, source, destination: "", protocol: "tcp",
    info: "", flags: 16, payload_len: 0, window: 100, data: "", ...part,
  };
}
const isA = (one: Packet) => one.source === "a";

describe("the sequence plot", () => {
  it("counts from the byte behind the SYN, over the wrap of 32 bits", () => {
    const { sent, acknowledged } = direction(
      [
        packet("a", { flags: 2, seq: 0xfffffff0 }),
        packet("b", { flags: 18, seq: 5, ack: 0xfffffff1 }),
        packet("a", { seq: 0xfffffff1, payload_len: 32 }),
        packet("b", { seq: 6, ack: 0x11, window: 10 }),
      ],
      isA,
      2,
    );
    expect(sent.map(({ from, to }) => [from, to])).toEqual([[0, 0], [0, 32]]);
    expect(acknowledged.map(({ to, limit }) => [to, limit])).toEqual([[0, 100], [32, 72]]);
  });

  it("tells what came again from what came late", () => {
    const { sent } = direction(
      [
        packet("a", { seq: 100, payload_len: 10 }),
        packet("a", { seq: 120, payload_len: 10 }),
        packet("a", { seq: 110, payload_len: 10 }),
        packet("a", { seq: 115, payload_len: 10 }),
      ],
      isA,
      0,
    );
    expect(sent.map((one) => one.isRetransmitted)).toEqual([false, false, false, true]);
  });

  it("marks windows of zero, and knows no limit without a scale", () => {
    const { acknowledged } = direction(
      [
        packet("a", { seq: 100, payload_len: 10 }),
        packet("b", { seq: 1, ack: 110, window: 0 }),
        packet("b", { seq: 1, ack: 0, window: 0, flags: 20 }),
      ],
      isA,
      null,
    );
    expect(acknowledged).toHaveLength(1);
    expect(acknowledged[0]).toMatchObject({ to: 10, limit: null, isZeroWindow: true });
  });

  it("takes scales only from both ends", () => {
    const opened = [packet("a", { flags: 2 }), packet("b", { flags: 18 })];
    expect(scalesOf(opened, 7, 8)).toEqual({ originator: 7, responder: 8 });
    expect(scalesOf(opened, 7, undefined)).toEqual({ originator: 0, responder: 0 });
    expect(scalesOf([], undefined, undefined)).toEqual({ originator: null, responder: null });
  });
});
