const THIN = "\u202f";
const STEP = 1024;
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const RATE_UNITS = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];

/** 1234567 as "1 234 567", with narrow blanks that do not break. */
export function grouped(count: number): string {
  const digits = Math.round(count).toString();
  return digits.replace(/\B(?=(\d{3})+$)/g, THIN);
}

function scaled(value: number, step: number, units: string[]): string {
  let rest = value;
  let place = 0;
  while (rest >= step && place < units.length - 1) {
    rest /= step;
    place += 1;
  }
  const decimals = place === 0 || rest >= 100 ? 0 : rest >= 10 ? 1 : 2;
  return `${rest.toFixed(decimals)}${THIN}${units[place] ?? ""}`;
}

export const bytes = (count: number) => scaled(count, STEP, BYTE_UNITS);
export const byteRate = (perSecond: number) => scaled(perSecond, 1000, RATE_UNITS);

/** Short counts for axes and tiles: 1.25 M. */
export function compact(count: number): string {
  return scaled(count, 1000, ["", "k", "M", "G", "T"]).trim();
}

export function plural(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** A share of a whole as a CSS width. */
export function share(part: number, whole: number): string {
  return `${whole > 0 ? Math.min(100, (100 * part) / whole).toFixed(2) : 0}%`;
}

export function percent(part: number, whole: number): string {
  if (whole <= 0) {
    return "0 %";
  }
  const value = (100 * part) / whole;
  return `${value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1)} %`;
}
