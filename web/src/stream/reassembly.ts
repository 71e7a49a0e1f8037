import type { Segment } from "./segment";

/** A stretch of a stream: bytes, or a number of bytes that are missing. */
export interface Chunk {
  isFromOriginator: boolean;
  /** The packet that brought its first byte. */
  packet: number;
  bytes: Uint8Array;
  missing: number;
}

export interface Conversation {
  chunks: Chunk[];
  bytes: { originator: number; responder: number };
  missing: { originator: number; responder: number };
}

/** Distance of two sequence numbers, which wrap at 32 bits. */
const distance = (from: number, to: number) => (to - from) | 0;

/** Both ways of a session, in the order in which the bytes came. */
export function follow(segments: Segment[]): Conversation {
  const originator = oneWay(segments.filter((segment) => segment.isFromOriginator));
  const responder = oneWay(segments.filter((segment) => !segment.isFromOriginator));
  return {
    chunks: joined(interleaved(originator, responder)),
    bytes: { originator: size(originator), responder: size(responder) },
    missing: { originator: lost(originator), responder: lost(responder) },
  };
}

const size = (chunks: Chunk[]) => chunks.reduce((sum, chunk) => sum + chunk.bytes.length, 0);
const lost = (chunks: Chunk[]) => chunks.reduce((sum, chunk) => sum + chunk.missing, 0);

function oneWay(segments: Segment[]): Chunk[] {
  const isStream = segments.some((segment) => segment.sequence !== null);
  return isStream ? bySequence(segments) : byOrder(segments);
}

function chunk(segment: Segment, bytes: Uint8Array, missing = 0): Chunk {
  const { isFromOriginator, packet } = segment;
  return { isFromOriginator, packet, bytes, missing };
}

/** Datagrams: as they came. What the capture cut is missing. */
function byOrder(segments: Segment[]): Chunk[] {
  return segments
    .filter((segment) => segment.length > 0)
    .flatMap((segment) => {
      const cut = segment.length - segment.payload.length;
      const bytes = chunk(segment, segment.payload);
      return cut > 0 ? [bytes, chunk(segment, new Uint8Array(), cut)] : [bytes];
    });
}

/** TCP: by sequence number. Of bytes that came twice the first ones count. */
function bySequence(segments: Segment[]): Chunk[] {
  const known = segments.filter((segment) => segment.sequence !== null && !segment.isReset);
  const syn = known.find((segment) => segment.isSyn);
  const first = syn ?? known.find((segment) => segment.length > 0);
  if (!first) {
    return [];
  }
  const base = (first.sequence ?? 0) + (syn ? 1 : 0);
  const offset = (segment: Segment) =>
    distance(base, (segment.sequence ?? 0) + (segment.isSyn ? 1 : 0));
  const ordered = known
    .filter((segment) => segment.payload.length > 0)
    .map((segment) => ({ segment, from: offset(segment) }))
    .sort((a, b) => a.from - b.from || a.segment.packet - b.segment.packet);
  const endOf = (segment: Segment) => offset(segment) + segment.length;
  // What follows a FIN has the number behind it, which is no byte of the stream.
  const fin = known.find((segment) => segment.isFin);
  const end = fin ? endOf(fin) : known.reduce((last, one) => Math.max(last, endOf(one)), 0);
  // Without a SYN an earlier segment may have come late: the stream begins with the earliest.
  const start = syn ? 0 : Math.min(0, ordered[0]?.from ?? 0);
  return laid(ordered, start, end);
}

function laid(ordered: { segment: Segment; from: number }[], start: number, end: number): Chunk[] {
  const chunks: Chunk[] = [];
  let next = start;
  for (const { segment, from } of ordered) {
    const known = Math.max(0, next - from);
    if (known >= segment.payload.length) {
      continue;
    }
    if (from > next) {
      chunks.push(chunk(segment, new Uint8Array(), from - next));
    }
    chunks.push(chunk(segment, segment.payload.subarray(known)));
    next = from + segment.payload.length;
  }
  const last = ordered.at(-1);
  if (last && end > next) {
    chunks.push(chunk(last.segment, new Uint8Array(), end - next));
  }
  return chunks;
}

/** Merges both ways by packet, and keeps the order of each. */
function interleaved(one: Chunk[], other: Chunk[]): Chunk[] {
  const merged: Chunk[] = [];
  let [left, right] = [0, 0];
  while (left < one.length || right < other.length) {
    const a = one[left];
    const b = other[right];
    if (a && (!b || a.packet <= b.packet)) {
      merged.push(a);
      left += 1;
    } else if (b) {
      merged.push(b);
      right += 1;
    }
  }
  return merged;
}

/** Neighbours of one sender become one chunk. */
function joined(chunks: Chunk[]): Chunk[] {
  const result: { first: Chunk; parts: Uint8Array[] }[] = [];
  for (const next of chunks) {
    const last = result.at(-1);
    const isSame = last?.first.isFromOriginator === next.isFromOriginator;
    if (last && isSame && last.first.missing === 0 && next.missing === 0) {
      last.parts.push(next.bytes);
    } else {
      result.push({ first: next, parts: [next.bytes] });
    }
  }
  return result.map(({ first, parts }) => ({ ...first, bytes: concatenated(parts) }));
}

function concatenated(parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
