import { correction } from "./correction";

/**
 * The time of the service. Relative times of queries count from its clock, and a browser's may be
 * hours wrong.
 */
class ServiceClock {
  /** What is added to the browser's clock; nothing while both agree. */
  offsetMs = $state(0);

  /** Called with the heading `Date` of an answer. */
  heard(date: string | null): void {
    const offsetMs = correction(this.offsetMs, date, Date.now());
    if (offsetMs !== this.offsetMs) {
      this.offsetMs = offsetMs;
    }
  }
}

export const serviceClock = new ServiceClock();
export const nowMs = () => Date.now() + serviceClock.offsetMs;
