import type { Member, Volume } from "../api/types";
import { grouped, plural } from "../text/numbers";
import { printable } from "../text/printable";
import { duration } from "../text/times";
import { lostOf } from "./rates";

export type Level = "good" | "doubt" | "bad" | "off";

export interface Verdict {
  level: Level;
  word: string;
  reason: string;
  /** Nothing is unknown: no loss was counted, and everything that can be lost is counted. */
  isCertain?: boolean;
}

export const WORST: Level[] = ["bad", "off", "doubt", "good"];
/** Volumes that a headline names. */
const NAMED = 3;

/** The state of all volumes in one line: the worst, and where. */
export function headline(verdicts: (readonly [string, Verdict | undefined])[]): string {
  const known = verdicts.flatMap(([name, found]) => (found ? [{ name, ...found }] : []));
  const worst = WORST.find((level) => known.some((one) => one.level === level));
  if (worst === undefined) {
    return "No volume is served";
  }
  if (worst === "good") {
    const isCertain = known.every((one) => one.isCertain);
    return isCertain ? "Everything is recorded" : "Recording, no loss known";
  }
  const found = known.filter((one) => one.level === worst);
  if (known.length === 1) {
    return found[0]?.word ?? "";
  }
  const named = found.slice(0, NAMED).map(({ name, word }) => `${name}: ${word.toLowerCase()}`);
  const rest = found.length - named.length;
  return named.join("; ") + (rest > 0 ? `; and ${plural(rest, "more volume")}` : "");
}

/** Whether everything is recorded, in words. The worst comes first. */
export function verdict(volume: Volume, lostLately: number | undefined): Verdict {
  if (volume.problem) {
    const reason = volume.problem.detail ?? volume.problem.title;
    return { level: "bad", word: "Not readable", reason };
  }
  if (!volume.interfaces) {
    return notRecorded(volume);
  }
  const away = volume.interfaces.filter((one) => one.is_away).map((one) => one.name ?? "files");
  if (lostLately !== undefined && lostLately > 0) {
    const reason = `${plural(lostLately, "packet")} lost in the last minute`;
    return { level: "bad", word: "Losing packets", reason };
  }
  if (away.length > 0) {
    const reason = `${away.join(", ")} is down or gone: what passes it is not seen`;
    return { level: "bad", word: "Not all recorded", reason };
  }
  return recording(volume, lostLately !== undefined);
}

function recording(volume: Volume, isKnown: boolean): Verdict {
  const lost = lostOf(volume);
  const since = duration(volume.elapsed_ns ?? 0);
  const unseen = (volume.interfaces ?? []).filter((one) => one.times_down > 0);
  if (lost > 0) {
    const before = `${plural(lost, "packet")} lost in the last ${since}`;
    const reason = isKnown ? `nothing is lost now; ${before}` : before;
    return { level: "doubt", word: "Recording, with losses before", reason };
  }
  if (unseen.length > 0) {
    const names = unseen.map((one) => one.name ?? "files").join(", ");
    const reason = `no loss known; what passed ${names} while it was down is not known`;
    return { level: "doubt", word: "Recording, with doubts", reason };
  }
  if (volume.interface_drops === null) {
    const reason = `no loss known in ${since}; a network card does not count its drops`;
    return { level: "good", word: "Recording", reason };
  }
  return { level: "good", word: "Recording", reason: `nothing lost in ${since}`, isCertain: true };
}

function notRecorded(volume: Volume): Verdict {
  if (volume.is_open) {
    const reason = "the volume is in use, but no recorder answers for it";
    return { level: "doubt", word: "Not known", reason };
  }
  if (volume.last_alive_ns === undefined) {
    return { level: "off", word: "Not recorded", reason: "nothing was ever recorded here" };
  }
  return volume.clean_stop
    ? { level: "off", word: "Not recorded", reason: "the recorder was stopped" }
    : { level: "bad", word: "Not recorded", reason: "the recorder ended without a stop" };
}

export interface Finding {
  level: Level;
  text: string;
  atNs?: number;
}

/** What an operator should look at. */
export function findings(volume: Volume): Finding[] {
  return [...diskFindings(volume), ...memberFindings(volume), ...indexFindings(volume)];
}

const memberText = (number: number, { path, state }: Member) =>
  `Member ${number} (${printable(path)}) is ${state}`;

function memberFindings({ members = [], spares = [] }: Volume): Finding[] {
  const bad = members.flatMap((member, number): Finding[] =>
    member.state === "whole"
      ? []
      : [{ level: "bad", text: memberText(number, member) }],
  );
  const gone = spares.filter((spare) => !spare.is_there);
  return [
    ...bad,
    ...gone.map(({ path }): Finding => {
      return { level: "doubt", text: `Spare ${printable(path)} is not there` };
    }),
  ];
}

function diskFindings({ disks, pool_columns = 0, pool_columns_free = 0 }: Volume): Finding[] {
  const found: Finding[] = [];
  const level = disks?.headroom?.level;
  if (level === "above") {
    found.push({ level: "bad", text: "More traffic arrives than the disks guarantee to store" });
  } else if (level === "near") {
    found.push({ level: "doubt", text: "Traffic is near the rate that the disks guarantee" });
  }
  for (const device of disks?.devices ?? []) {
    if (device.is_slower_than_qualified) {
      const text = `${printable(device.path)} is slower than it was qualified`;
      found.push({ level: "bad", text });
    }
  }
  if (pool_columns > 0 && pool_columns_free * 4 < pool_columns) {
    const used = pool_columns - pool_columns_free;
    found.push({
      level: "doubt",
      text: `The packet buffer is nearly full: ${used} of ${pool_columns} columns are in use`,
    });
  }
  return found;
}

function indexFindings(volume: Volume): Finding[] {
  const { indexer_deaths = 0, left_out = 0, long_waits = [] } = volume;
  const found: Finding[] = [];
  if (indexer_deaths > 0) {
    found.push({ level: "doubt", text: `The indexer ended ${plural(indexer_deaths, "time")}` });
  }
  if (left_out > 0) {
    const text = `${grouped(left_out)} packets have no session, as they ended the indexer twice`;
    found.push({ level: "doubt", text });
  }
  return [...found, ...long_waits.map((text): Finding => ({ level: "doubt", text }))];
}

/** Packets that wait for the index. */
export const lag = ({ unindexed = 0, left_out = 0 }: Volume) => Math.max(0, unindexed - left_out);
