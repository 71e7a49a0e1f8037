import type { Packet } from "../api/types";
import { fromBase64 } from "./bytes";

/** The payload of one packet, and where it lies in the stream of its sender. */
export interface Segment {
  packet: number;
  isFromOriginator: boolean;
  /** TCP sequence number of the first byte; UDP has none. */
  sequence: number | null;
  /** A SYN takes one number, and the stream begins behind it. */
  isSyn: boolean;
  /** The stream ends with its last byte. A FIN takes one number, too. */
  isFin: boolean;
  /** What a reset carries is no part of the stream, and its number may be any. */
  isReset: boolean;
  payload: Uint8Array;
  /** Bytes of payload on the wire. More than `payload` has if the packet was cut. */
  length: number;
}

const FIN = 1;
const SYN = 2;
const RST = 4;

export function segmentOf(packet: Packet, isFromOriginator: boolean): Segment {
  const data = fromBase64(packet.data);
  const flags = packet.flags ?? 0;
  return {
    packet: packet.number,
    isFromOriginator,
    sequence: packet.seq ?? null,
    isSyn: (flags & SYN) !== 0,
    isFin: (flags & FIN) !== 0,
    isReset: (flags & RST) !== 0,
    payload: payloadOf(packet, data),
    length: packet.payload_len ?? 0,
  };
}

/** What was captured of the payload. Behind it a frame may have padding or a trailer. */
export function payloadOf(packet: Packet, data: Uint8Array): Uint8Array {
  const from = packet.payload_at ?? data.length;
  return data.subarray(from, from + (packet.payload_len ?? data.length - from));
}

/** "10.0.0.1:80" or "[::1]:80"; without a port only the address. */
export function endpoint(ip: string, port: number | undefined): string {
  if (port === undefined) {
    return ip;
  }
  return ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`;
}
