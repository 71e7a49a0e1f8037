/** Times of the recorder are nanoseconds since 1970. Floats of them are exact to 256 ns. */
export const NS_PER_MS = 1e6;
export const NS_PER_S = 1e9;

export type Zone = "utc" | "local";

const two = (value: number) => value.toString().padStart(2, "0");

function parts(ms: number, zone: Zone): [number, number, number, number, number, number] {
  const at = new Date(ms);
  return zone === "utc"
    ? [
        at.getUTCFullYear(),
        at.getUTCMonth() + 1,
        at.getUTCDate(),
        at.getUTCHours(),
        at.getUTCMinutes(),
        at.getUTCSeconds(),
      ]
    : [
        at.getFullYear(),
        at.getMonth() + 1,
        at.getDate(),
        at.getHours(),
        at.getMinutes(),
        at.getSeconds(),
      ];
}

/** The offset of the browser's zone as "UTC+01:00". */
export function offsetName(ms: number): string {
  const minutes = -new Date(ms).getTimezoneOffset();
  const size = Math.abs(minutes);
  return `UTC${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

export function zoneName(zone: Zone, ms = Date.now()): string {
  return zone === "utc" ? "UTC" : `local, ${offsetName(ms)}`;
}

/** "2026-11-27 10:00:00.123", in the zone that the page shows. */
export function dateTime(ns: number, zone: Zone, decimals = 3): string {
  const ms = Math.floor(ns / NS_PER_MS);
  const [year, month, day] = parts(ms, zone);
  return `${year}-${two(month)}-${two(day)} ${clock(ns, zone, decimals)}`;
}

/** "10:00:00.123". */
export function clock(ns: number, zone: Zone, decimals = 0): string {
  const ms = Math.floor(ns / NS_PER_MS);
  const [, , , hours, minutes, seconds] = parts(ms, zone);
  const whole = `${two(hours)}:${two(minutes)}:${two(seconds)}`;
  if (decimals === 0) {
    return whole;
  }
  const micros = Math.floor((ns % NS_PER_S) / 1000);
  return `${whole}.${micros.toString().padStart(6, "0").slice(0, decimals)}`;
}

/** As queries take it: "2026-11-27T10:00:00Z", with a fraction where there is one. */
export function isoUtc(ns: number): string {
  const micros = Math.round(ns / 1000);
  const seconds = Math.floor(micros / 1e6);
  const fraction = (micros - seconds * 1e6).toString().padStart(6, "0").replace(/0+$/, "");
  const whole = new Date(seconds * 1000).toISOString().slice(0, 19);
  return `${whole}${fraction === "" ? "" : `.${fraction}`}Z`;
}

const WRITTEN = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d(?:\.\d+)?))?)?(Z)?$/;

/** A time that somebody wrote in the zone of the page; nothing if it is none. */
export function nsOfText(text: string, zone: Zone): number | null {
  const found = WRITTEN.exec(text.trim());
  if (!found) {
    return null;
  }
  const [year = 0, month = 1, day = 1, hours = 0, minutes = 0] = found.slice(1, 6).map(Number);
  const parts = [year, month - 1, day, hours || 0, minutes || 0] as const;
  const isUtc = zone === "utc" || found[7] === "Z";
  const ms = isUtc ? Date.UTC(...parts) : new Date(...parts).getTime();
  return ms * NS_PER_MS + Number(found[6] ?? 0) * NS_PER_S;
}

const SPANS: [number, string][] = [
  [86_400e9, "d"],
  [3_600e9, "h"],
  [60e9, "min"],
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "\u00b5s"],
];

/** "2.5 d", "340 ms": two or three digits and a unit. */
export function duration(ns: number): string {
  const found = SPANS.find(([span]) => ns >= span);
  if (!found) {
    return `${Math.round(ns)} ns`;
  }
  const value = ns / found[0];
  return `${value >= 100 ? value.toFixed(0) : trimmed(value)} ${found[1]}`;
}

function trimmed(value: number): string {
  return value.toFixed(value >= 10 ? 1 : 2).replace(/\.?0+$/, "");
}

/** "3 s ago"; for times to come "in 3 s". */
export function ago(ns: number, nowNs: number): string {
  return nowNs >= ns ? `${duration(nowNs - ns)} ago` : `in ${duration(ns - nowNs)}`;
}
