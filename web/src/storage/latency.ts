import { printable } from "../text/printable";
import type { Volume } from "../api/types";

interface Sample {
  atMs: number;
  elapsedNs: number;
  /** Writes, and their latency together, by device. */
  devices: { name: string; writes: number; sumNs: number }[];
}

/** Latencies of writes since the page is open. */
export class LatencyHistory {
  constructor(
    private readonly limit: number,
    private readonly samples: readonly Sample[] = [],
  ) {}

  /** One sample more; the same answer counts once. */
  with(volume: Volume, atMs: number): LatencyHistory {
    const devices = volume.disks?.devices;
    const last = this.samples.at(-1);
    if (!devices || volume.elapsed_ns === undefined || last?.elapsedNs === volume.elapsed_ns) {
      return this;
    }
    const sample = {
      atMs,
      elapsedNs: volume.elapsed_ns,
      devices: devices.map(({ member, path, places }) => ({
        name: member === null ? `spare ${printable(path)}` : `member ${member}`,
        writes: places.reduce((sum, [writes]) => sum + writes, 0),
        sumNs: places.reduce((sum, [writes, , mean]) => sum + writes * mean, 0),
      })),
    };
    return new LatencyHistory(this.limit, [...this.samples, sample].slice(-this.limit));
  }

  /** Devices of the newest sample. */
  names(): string[] {
    return this.samples.at(-1)?.devices.map(({ name }) => name) ?? [];
  }

  /** Mean latency of the writes between samples, by device; nothing where there were none. */
  means(): { atS: number[]; byDevice: (number | null)[][] } {
    const names = this.names();
    const pairs = this.samples.slice(1).map((sample, at) => ({ sample, before: this.samples[at] }));
    const mean = (name: string, now: Sample, then: Sample | undefined) => {
      const [a, b] = [now, then].map((one) => one?.devices.find((it) => it.name === name));
      const writes = (a?.writes ?? 0) - (b?.writes ?? 0);
      return a && b && writes > 0 ? Math.max(0, (a.sumNs - b.sumNs) / writes) : null;
    };
    return {
      atS: pairs.map(({ sample }) => sample.atMs / 1000),
      byDevice: names.map((name) => pairs.map(({ sample, before }) => mean(name, sample, before))),
    };
  }
}
