/** `Date` in an answer has whole seconds, and the answer was on its way. */
const JITTER_MS = 2000;

/**
 * What is added to the browser's clock to have the service's: what counted before, unless the
 * heading `Date` of an answer says something else by more than its jitter.
 */
export function correction(beforeMs: number, date: string | null, browserMs: number): number {
  const offsetMs = Date.parse(date ?? "") - browserMs;
  if (Number.isNaN(offsetMs) || Math.abs(offsetMs - beforeMs) <= JITTER_MS) {
    return beforeMs;
  }
  return Math.abs(offsetMs) > JITTER_MS ? offsetMs : 0;
}
