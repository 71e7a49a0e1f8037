import type { Packet } from "../api/types";

/** A segment of TCP in the plot of one direction. Numbers count from the sender's first byte. */
export interface Sent {
  packet: number;
  timeNs: number;
  from: number;
  to: number;
  /** Some of its bytes had been seen before. */
  isRetransmitted: boolean;
}

/** What the receiver said with an acknowledgement. */
export interface Acknowledged {
  packet: number;
  timeNs: number;
  to: number;
  /** Up to here the sender may send; null where the scale of the window is not known. */
  limit: number | null;
  isZeroWindow: boolean;
}

export interface Direction {
  sent: Sent[];
  acknowledged: Acknowledged[];
}

const FIN = 1;
const SYN = 2;
const RST = 4;

const has = (packet: Packet, flag: number) => ((packet.flags ?? 0) & flag) !== 0;

/** Numbers wrap at 32 bits. Each is the nearest one to the one before. */
class Numbers {
  #base: number | null = null;
  #last = 0;

  /** Where numbers count from, if nothing set it yet. */
  begin(sequence: number): void {
    this.#base ??= sequence;
  }

  relative(sequence: number): number {
    this.begin(sequence);
    const before = (this.#base ?? 0) + this.#last;
    this.#last += (sequence - before) | 0;
    return this.#last;
  }
}

/** Stretches that were seen, in order and apart. */
class Seen {
  #ranges: [number, number][] = [];

  /** Adds a stretch, and says whether some of it was there. */
  add(from: number, to: number): boolean {
    const isOverlapping = this.#ranges.some(([start, end]) => from < end && start < to);
    const touches = ([start, end]: [number, number]) => from <= end && start <= to;
    const near = this.#ranges.filter(touches);
    const whole: [number, number] = [
      Math.min(from, ...near.map(([start]) => start)),
      Math.max(to, ...near.map(([, end]) => end)),
    ];
    this.#ranges = [...this.#ranges.filter((range) => !touches(range)), whole];
    return isOverlapping;
  }
}

export interface Scales {
  /** Binary logarithm of the window's unit, by who says the window; null where it is not known. */
  originator: number | null;
  responder: number | null;
}

/** The direction whose sender is chosen by `isSender`. */
export function direction(
  packets: Packet[],
  isSender: (packet: Packet) => boolean,
  receiverScale: number | null,
): Direction {
  const numbers = new Numbers();
  const acknowledgements = new Numbers();
  const seen = new Seen();
  const sent: Sent[] = [];
  const acknowledged: Acknowledged[] = [];
  const opening = packets.find((one) => isSender(one) && one.seq !== undefined && !has(one, RST));
  if (opening?.seq === undefined) {
    return { sent, acknowledged };
  }
  const base = opening.seq + (has(opening, SYN) ? 1 : 0);
  numbers.begin(base);
  acknowledgements.begin(base);
  for (const packet of packets) {
    if (packet.seq === undefined || has(packet, RST)) {
      continue;
    }
    if (isSender(packet)) {
      const from = numbers.relative(packet.seq + (has(packet, SYN) ? 1 : 0));
      const to = from + (packet.payload_len ?? 0);
      const isRetransmitted = to > from && seen.add(from, to);
      if (to > from || has(packet, SYN) || has(packet, FIN)) {
        sent.push({
          packet: packet.number, timeNs: packet.time_ns, from, to, isRetransmitted,
        });
      }
    } else if (packet.ack !== undefined) {
      const to = acknowledgements.relative(packet.ack);
      acknowledged.push(said(packet, to, receiverScale));
    }
  }
  return { sent, acknowledged };
}

function said(packet: Packet, to: number, scale: number | null): Acknowledged {
  // The window of a SYN is never scaled.
  const isSyn = has(packet, SYN);
  const unit = isSyn ? 1 : scale === null ? null : 2 ** scale;
  const window = packet.window ?? 0;
  return {
    packet: packet.number,
    timeNs: packet.time_ns,
    to,
    limit: unit === null ? null : to + window * unit,
    isZeroWindow: packet.window === 0 && !isSyn,
  };
}

/** Scales hold only if both ends said one. Without the handshake nothing is known of them. */
export function scalesOf(
  packets: Packet[],
  originator: number | undefined,
  responder: number | undefined,
): Scales {
  if (originator !== undefined && responder !== undefined) {
    return { originator, responder };
  }
  const senders = new Set(packets.filter((one) => has(one, SYN)).map((one) => one.source));
  return senders.size === 2
    ? { originator: 0, responder: 0 }
    : { originator: null, responder: null };
}
