import type { Measure, TopField, TopValue } from "../api/types";
import { absolute, boundsOf } from "../query/range";

const HOUR_NS = 3_600e9;

/** What a range can be compared with, as the address has it. */
export const SHIFTS = [
  { word: "", name: "nothing" },
  { word: "before", name: "the same time before it" },
  { word: "1h", name: "an hour earlier" },
  { word: "1d", name: "a day earlier" },
  { word: "1w", name: "a week earlier" },
] as const;

const LENGTHS_NS: Record<string, number> = {
  "1h": HOUR_NS,
  "1d": 24 * HOUR_NS,
  "1w": 168 * HOUR_NS,
};

export interface Bounds {
  fromNs: number;
  toNs: number;
}

/** The two ranges of a comparison; nothing if there is none, or the range has no ends. */
export function rangesOf(
  range: string,
  shift: string,
  nowNs: number,
): { now: Bounds; then: Bounds } | null {
  const now = absolute(range) ?? boundsOf(range, nowNs);
  if (!now) {
    return null;
  }
  const lengthNs = shift === "before" ? now.toNs - now.fromNs : LENGTHS_NS[shift];
  if (lengthNs === undefined) {
    return null;
  }
  return { now, then: { fromNs: now.fromNs - lengthNs, toNs: now.toNs - lengthNs } };
}

/** A value in both ranges. An amount is null where only the largest values are known. */
export interface Compared {
  text: string;
  query: string;
  now: number | null;
  then: number | null;
  difference: number | null;
}

/**
 * The values of two answers, those with the largest difference first. A value that an answer does
 * not name has nothing there if the answer named all of its values, and else is not known.
 */
export function compared(now: TopField, then: TopField, by: Measure): Compared[] {
  const earlier = new Map(then.values.map((value) => [value.query, value]));
  const later = new Map(now.values.map((value) => [value.query, value]));
  const all = new Map<string, TopValue>([...earlier, ...later]);
  const amount = (value: TopValue | undefined, of: TopField) =>
    value ? value[by] : hasAll(of) ? 0 : null;
  return [...all.values()]
    .map(({ text, query }) => {
      const [a, b] = [amount(later.get(query), now), amount(earlier.get(query), then)];
      const difference = a === null || b === null ? null : a - b;
      return { text, query, now: a, then: b, difference };
    })
    .sort((a, b) => weight(b) - weight(a));
}

export const hasAll = (field: TopField) =>
  field.values.length >= field.distinct && (field.uncounted?.sessions ?? 0) === 0;

/** A value that one answer does not name differs by what the other one has, or a bit less. */
function weight({ now, then, difference }: Compared): number {
  return Math.abs(difference ?? now ?? then ?? 0);
}
