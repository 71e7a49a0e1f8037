import type { QualificationReport } from "../api/types";

/** What a report of `qualify` says, as far as it is shown. */
export interface Measured {
  guaranteed: number | null;
  mean: number | null;
  minimum: number | null;
  poolBytes: number | null;
  startedNs: number | null;
  target: string;
  /** Place of the surface in bytes, and the rate there in bytes a second. */
  surface: { offset: number; rate: number }[];
  /** Bytes of a packet buffer, and the rate that is guaranteed with it. */
  pools: { bytes: number; rate: number }[];
}

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null;
const list = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : []);
const number = (value: unknown) => (typeof value === "number" ? value : null);

/** Reads a report. What is not in it is not shown. */
export function measured({ report, file }: QualificationReport): Measured {
  const said: Json = isObject(report) ? report : {};
  const parts = list(said["parts"]);
  const part = (name: string) => parts.find((one) => one["part"] === name);
  const target = isObject(said["target"]) ? said["target"]["path"] : null;
  const verdict = isObject(said["verdict"]) ? said["verdict"] : {};
  const surface = list(part("sweep")?.["steps"]).flatMap((step) => {
    const [offset, bytes, ns] = [step["offset"], step["bytes"], step["ns"]].map(number);
    return offset != null && bytes != null && ns ? [{ offset, rate: bytes / (ns / 1e9) }] : [];
  });
  const curve = list((part("ring") ?? part("fill"))?.["curve"]);
  const pools = curve.flatMap((step) => {
    const [bytes, rate] = [step["pool_bytes"], step["bytes_per_s"]].map(number);
    return bytes != null && rate != null ? [{ bytes, rate }] : [];
  });
  return {
    guaranteed: number(said["guaranteed_bytes_per_s"]),
    mean: number(said["mean_bytes_per_s"]),
    minimum: number(said["minimum_bytes_per_s"]),
    poolBytes: number(verdict["pool_bytes"]),
    startedNs: number(said["started_ns"]),
    target: typeof target === "string" ? target : file,
    surface,
    pools,
  };
}

/** Two lists of places in one, by place; absent where a list has none. */
export function joined<T extends { rate: number }>(
  lists: T[][],
  placeOf: (one: T) => number,
): [number[], ...(number | null)[][]] {
  const places = [...new Set(lists.flatMap((one) => one.map(placeOf)))].sort((a, b) => a - b);
  const rates = lists.map((one) => {
    const known = new Map(one.map((step) => [placeOf(step), step.rate]));
    return places.map((place) => known.get(place) ?? null);
  });
  return [places, ...rates];
}

/** By how much a number has changed. */
export function change(before: number | null, after: number | null): string {
  if (before === null || after === null || before <= 0) {
    return "not known";
  }
  const percent = (100 * (after - before)) / before;
  return `${percent > 0 ? "+" : percent < 0 ? "\u2212" : ""}${Math.abs(percent).toFixed(1)} %`;
}
