import { describe, expect, it } from "vitest";
import type { Volume } from "../api/types";
import { LatencyHistory } from "./latency";

const volume = (elapsed: number, writes: number, meanNs: number): Volume =>
  ({
    name: "v",
    volume_id: "v",
    elapsed_ns: elapsed,
    disks: { devices: [{ member: 0, path: "a", places: [[writes, 0, meanNs, 0]] }] },
  }) as unknown as Volume;

describe("latencies of writes over time", () => {
  it("are those of the writes between two samples", () => {
    let history = new LatencyHistory(3).with(volume(1, 10, 100), 1000);
    history = history.with(volume(1, 10, 100), 2000).with(volume(2, 20, 150), 3000);
    expect(history.names()).toEqual(["member 0"]);
    expect(history.means()).toEqual({ atS: [3], byDevice: [[200]] });
    history = history.with(volume(3, 20, 150), 5000);
    expect(history.means().byDevice).toEqual([[200, null]]);
  });
});
