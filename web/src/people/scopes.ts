/** What a token may permit. */
export const SCOPES = ["sessions", "payload", "extract", "request", "approve", "hold", "admin"];

const DAY_MS = 86_400_000;

/** Whether a token of this end does not count any more. */
export const isOver = (expires: string | null | undefined, nowMs: number) =>
  typeof expires === "string" && Date.parse(expires) <= nowMs;

/** The time so many days later, in RFC 3339 without fractions. */
export function expiryAfter(days: number, nowMs: number): string {
  return new Date(nowMs + days * DAY_MS).toISOString().replace(/\.\d+Z$/, "Z");
}
