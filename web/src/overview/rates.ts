import type { Volume } from "../api/types";

export interface Sample {
  atMs: number;
  /** Time of the recording, and its counters then. */
  elapsedNs: number;
  offered: number;
  stored: number;
  lost: number;
}

export interface Rates {
  atS: number[];
  offered: (number | null)[];
  stored: (number | null)[];
  lost: (number | null)[];
}

/** Packets that a recording lost, by what is known. */
export function lostOf(volume: Volume): number {
  const { kernel_drops = 0, writer_drops = 0, interface_drops } = volume;
  return kernel_drops + writer_drops + (interface_drops ?? 0);
}

/** Counters of a recording since the page is open. */
export class RateHistory {
  constructor(
    private readonly limit: number,
    readonly samples: readonly Sample[] = [],
  ) {}

  /** One sample more. The recorder's answer may be two seconds old: the same one counts once. */
  with(volume: Volume, atMs: number): RateHistory {
    if (volume.elapsed_ns === undefined) {
      return this;
    }
    const last = this.samples.at(-1);
    if (last?.elapsedNs === volume.elapsed_ns) {
      return this;
    }
    const sample = {
      atMs,
      elapsedNs: volume.elapsed_ns,
      offered: volume.offered ?? 0,
      stored: volume.stored ?? 0,
      lost: lostOf(volume),
    };
    return new RateHistory(this.limit, [...this.samples, sample].slice(-this.limit));
  }

  /** Packets a second between samples. Nothing where a new recording began in between. */
  rates(): Rates {
    const rates: Rates = { atS: [], offered: [], stored: [], lost: [] };
    this.samples.forEach((sample, index) => {
      const before = this.samples[index - 1];
      if (!before) {
        return;
      }
      const seconds = (sample.elapsedNs - before.elapsedNs) / 1e9;
      const rate = (now: number, then: number) =>
        seconds > 0 ? Math.max(0, (now - then) / seconds) : null;
      rates.atS.push(sample.atMs / 1000);
      rates.offered.push(rate(sample.offered, before.offered));
      rates.stored.push(rate(sample.stored, before.stored));
      rates.lost.push(rate(sample.lost, before.lost));
    });
    return rates;
  }

  /**
   * Packets lost in the last minute, over recordings that began in it; undefined where one look
   * alone cannot tell.
   */
  lostLately(nowMs: number): number | undefined {
    const at = this.samples.findIndex((sample) => nowMs - sample.atMs <= 60_000);
    const late = at < 0 ? [] : this.samples.slice(at);
    const first = late[0];
    // What came before the first look counts where its recording began in this minute.
    const isYoung = first !== undefined && nowMs - first.atMs + first.elapsedNs / 1e6 <= 60_000;
    if (late.length < 2 && !isYoung && first?.lost !== 0) {
      return undefined;
    }
    const gained = late.map((sample, index) => {
      const before = late[index - 1];
      const isNew = before === undefined ? isYoung : sample.elapsedNs < before.elapsedNs;
      return isNew ? sample.lost : Math.max(0, sample.lost - (before?.lost ?? sample.lost));
    });
    return gained.reduce((sum, lost) => sum + lost, 0);
  }
}
