import type { Completeness, Traffic } from "../api/types";
import { NS_PER_S } from "../text/times";

export interface Stacked {
  /** Beginnings of the buckets, in seconds since 1970, without holes. */
  atS: number[];
  /** Of each series the sum of it and all before it. */
  sums: number[][];
}

const SERIES_MOST = 7;
export const OTHERS = "others";

/** The protocols with most bytes, the largest first; the rest as one, with that of the recorder. */
export function reduced(traffic: Traffic): Traffic {
  if (traffic.queries) {
    return ofValues(traffic, traffic.queries);
  }
  const total = (index: number) =>
    traffic.buckets.reduce((sum, [, bytes]) => sum + (bytes[index] ?? 0), 0);
  const all = traffic.series
    .map((name, index) => ({ name, index, bytes: total(index) }))
    .filter((one) => one.bytes > 0);
  // What several protocols share is no protocol, however many bytes they have together.
  const isShared = ({ index }: { index: number }) =>
    traffic.others !== undefined && index === traffic.series.length - 1;
  const ranked = all.filter((one) => !isShared(one)).sort((a, b) => b.bytes - a.bytes);
  const named = ranked.slice(0, SERIES_MOST);
  const rest = [...ranked.slice(SERIES_MOST), ...all.filter(isShared)];
  const restOf = (bytes: number[]) => rest.reduce((sum, { index }) => sum + (bytes[index] ?? 0), 0);
  return {
    width_ns: traffic.width_ns,
    series: [...named.map((one) => one.name), ...(rest.length > 0 ? [OTHERS] : [])],
    buckets: traffic.buckets.map(([start, bytes]) => [
      start,
      [
        ...named.map(({ index }) => bytes[index] ?? 0),
        ...(rest.length > 0 ? [restOf(bytes)] : []),
      ],
    ]),
  };
}

/** Values of a field, the largest first; those without it and all others come last. */
function ofValues(traffic: Traffic, queries: (string | null)[]): Traffic {
  const rank = (index: number) =>
    queries[index] === null ? 2 : queries[index]?.startsWith("not has ") ? 1 : 0;
  const order = traffic.series
    .map((_, index) => index)
    .filter((index) => traffic.buckets.some(([, counts]) => (counts[index] ?? 0) > 0))
    .sort((a, b) => rank(a) - rank(b));
  return {
    width_ns: traffic.width_ns,
    series: order.map((index) => (queries[index] === null ? OTHERS : traffic.series[index] ?? "")),
    queries: order.map((index) => queries[index] ?? null),
    buckets: traffic.buckets.map(([start, counts]) => [
      start,
      order.map((index) => counts[index] ?? 0),
    ]),
  };
}

const BUCKETS_MOST = 20_000;

/** Traffic as stacked columns. Buckets that were left out had no traffic. */
export function stacked({ width_ns, buckets, series }: Traffic): Stacked {
  const first = buckets[0]?.[0];
  const last = buckets.at(-1)?.[0];
  if (first === undefined || last === undefined || width_ns <= 0) {
    return { atS: [], sums: series.map(() => []) };
  }
  const count = Math.min(BUCKETS_MOST, Math.round((last - first) / width_ns) + 1);
  // One more on each side, so that columns end where the traffic ends.
  const atS = Array.from({ length: count + 2 }, (_, n) => (first + (n - 1) * width_ns) / NS_PER_S);
  const sums = series.map(() => new Array<number>(count + 2).fill(0));
  for (const [start, bytes] of buckets) {
    const place = Math.round((start - first) / width_ns) + 1;
    let sum = 0;
    series.forEach((_, index) => {
      sum += bytes[index] ?? 0;
      const row = sums[index];
      if (row && place < row.length) {
        row[place] = sum;
      }
    });
  }
  return { atS, sums };
}

export interface Shade {
  fromS: number;
  toS: number;
  kind: "lost" | "unknown";
  text: string;
}

const CAUSES: Record<string, string> = {
  interface_drops: "lost in the network card or its driver",
  kernel_drops: "lost because the kernel ring was full",
  writer_drops: "lost because the disks were too slow",
  crash: "the recorder ended without a stop",
  damage: "pieces that cannot be read",
};
const DOUBTS: Record<string, string> = {
  crash: "the recorder ended without a stop",
  going: "the recorder has not yet reported packets",
  unsaid: "the volume does not say whether a recorder ran",
};

/** The times of an answer in which something is missing, or may be. */
export function shades(completeness: Completeness | undefined): Shade[] {
  const { gaps = [], not_recorded = [], not_held = [], not_known = [] } = completeness ?? {};
  const shade = (
    times: { from_ns?: number; to_ns?: number },
    kind: Shade["kind"],
    text: string,
  ): Shade => ({
    fromS: (times.from_ns ?? -Infinity) / NS_PER_S,
    toS: (times.to_ns ?? Infinity) / NS_PER_S,
    kind,
    text,
  });
  const count = (packets: number | undefined) =>
    packets === undefined ? "an unknown number of packets" : `${packets} packets`;
  return [
    ...not_recorded.map((times) => shade(times, "lost", "no recorder ran")),
    ...not_held.map((times) => shade(times, "lost", "overwritten or erased")),
    ...gaps.map((gap) =>
      shade(
        gap,
        gap.cause === "crash" ? "unknown" : "lost",
        `${count(gap.packets)}: ${CAUSES[gap.cause] ?? gap.cause}`,
      ),
    ),
    ...not_known.map((doubt) => shade(doubt, "unknown", DOUBTS[doubt.why] ?? doubt.why)),
  ];
}
