import { describe, expect, it } from "vitest";
import type { InterfaceAccount, Volume } from "../api/types";
import { RateHistory } from "./rates";
import { headline, verdict } from "./verdict";

const account: InterfaceAccount = {
  name: "eth0",
  offered: 10,
  stored: 10,
  cut: 0,
  copies: 0,
  headers_only: 0,
  kernel_drops: 0,
  writer_drops: 0,
  in_flight: 0,
  interface_drops: 0,
  filter_rejects: 0,
  too_long: 0,
  is_away: false,
  times_down: 0,
};
const volume: Volume = {
  ...account,
  name: "spool",
  volume_id: "1",
  elapsed_ns: 60e9,
  interfaces: [account],
};

describe("the verdict", () => {
  it("is certain only where nothing is unknown", () => {
    expect(verdict(volume, 0)).toMatchObject({ level: "good", isCertain: true });
    const unknown = { ...volume, interface_drops: null };
    expect(verdict(unknown, 0).isCertain).toBeUndefined();
    const down = { ...volume, interfaces: [{ ...account, times_down: 1 }] };
    expect(verdict(down, 0).level).toBe("doubt");
  });

  it("says what is lost now, and what was lost before", () => {
    expect(verdict(volume, 5)).toMatchObject({ level: "bad", word: "Losing packets" });
    expect(verdict({ ...volume, kernel_drops: 5 }, 0).level).toBe("doubt");
  });

  it("says why nothing is recorded", () => {
    const idle = { name: "spool", volume_id: "1", is_open: false, clean_stop: true };
    expect(verdict(idle, 0).reason).toContain("nothing was ever");
    expect(verdict({ ...idle, last_alive_ns: 1 }, 0).level).toBe("off");
    expect(verdict({ ...idle, last_alive_ns: 1, clean_stop: false }, 0).level).toBe("bad");
    expect(verdict({ ...idle, is_open: true }, 0).word).toBe("Not known");
    const problem = { title: "The volume cannot be read" };
    expect(verdict({ ...idle, problem }, 0).level).toBe("bad");
  });
});

describe("the headline", () => {
  const good = verdict(volume, 0);
  const bad = verdict(volume, 5);

  it("is of one volume, or names the worst ones", () => {
    expect(headline([])).toBe("No volume is served");
    expect(headline([["a", good]])).toBe("Everything is recorded");
    expect(headline([["a", bad]])).toBe("Losing packets");
    expect(headline([["a", good], ["b", bad]])).toBe("b: losing packets");
    const many = ["a", "b", "c", "d"].map((name) => [name, bad] as const);
    expect(headline(many)).toMatch(/^a: losing packets; b: .*; and 1 more volume$/);
  });

  it("claims everything only where nothing is unknown", () => {
    const unknown = verdict({ ...volume, interface_drops: null }, 0);
    expect(headline([["a", good], ["b", unknown]])).toBe("Recording, no loss known");
  });
});

describe("rates", () => {
  it("are differences over the time of the recorder", () => {
    const later = { ...volume, elapsed_ns: 62e9, offered: 30, stored: 28, kernel_drops: 2 };
    const history = new RateHistory(10).with(volume, 1000).with(later, 3000).with(later, 5000);
    expect(history.rates()).toEqual({ atS: [3], offered: [10], stored: [9], lost: [1] });
    expect(history.lostLately(5000)).toBe(2);
  });

  it("count what was lost before and behind a new recording", () => {
    const lost = { ...volume, kernel_drops: 7 };
    const again = { ...volume, kernel_drops: 3 };
    const samples = new RateHistory(10)
      .with({ ...volume, kernel_drops: 0, elapsed_ns: 100e9 }, 100_000)
      .with({ ...lost, elapsed_ns: 102e9 }, 102_000)
      .with({ ...again, elapsed_ns: 1e9 }, 105_000);
    const base = (volume.writer_drops ?? 0) + (volume.interface_drops ?? 0);
    expect(samples.lostLately(106_000)).toBe(7 + 3 + base);
    // One look at a recording that has lost something long since: now is not known.
    const one = new RateHistory(10).with({ ...lost, elapsed_ns: 900e9 }, 1000);
    expect(one.lostLately(2000)).toBeUndefined();
    expect(verdict({ ...volume, ...lost }, undefined).reason).not.toContain("nothing is lost now");
  });

  it("have a hole where a new recording began", () => {
    const again = { ...volume, elapsed_ns: 1e9, offered: 1 };
    const history = new RateHistory(10).with(volume, 1000).with(again, 3000);
    expect(history.rates().offered).toEqual([null]);
  });
});
