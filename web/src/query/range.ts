import { between, both } from "./compose";

/** A choice of times: "15m", "1h", "24h", "all", or "FROM/TO" in nanoseconds since 1970. */
export const CHOICES = [
  { word: "15m", name: "15 min" },
  { word: "1h", name: "1 h" },
  { word: "24h", name: "1 day" },
  { word: "all", name: "All" },
] as const;

const ABSOLUTE = /^(\d+)\/(\d+)$/;
const RELATIVE = /^\d+[smhdw]$/;

export function absolute(word: string): { fromNs: number; toNs: number } | null {
  const found = ABSOLUTE.exec(word);
  return found ? { fromNs: Number(found[1]), toNs: Number(found[2]) } : null;
}

const UNITS_NS: Record<string, number> = {
  s: 1e9,
  m: 60e9,
  h: 3_600e9,
  d: 86_400e9,
  w: 604_800e9,
};

/** The two ends of a range; nothing for all times. */
export function boundsOf(word: string, nowNs: number): { fromNs: number; toNs: number } | null {
  if (!RELATIVE.test(word)) {
    return absolute(word);
  }
  const length = parseInt(word, 10) * (UNITS_NS[word.slice(-1)] ?? 0);
  return { fromNs: nowNs - length, toNs: nowNs };
}

/** A range as an address carries it. Floats of nanoseconds are written without an exponent. */
export const absoluteWord = (fromNs: number, toNs: number) =>
  `${BigInt(Math.floor(fromNs))}/${BigInt(Math.ceil(toNs))}`;

/** The condition of a range; empty for all times. */
export function condition(word: string): string {
  const times = absolute(word);
  if (times) {
    return between(times.fromNs, times.toNs);
  }
  return RELATIVE.test(word) ? `since ${word} ago` : "";
}

export const within = (query: string, word: string) => both(query, condition(word));
