import type { AuditLine } from "../api/types";
import { bytes, plural } from "../text/numbers";
import { printable } from "../text/printable";
import { dateTime, NS_PER_MS, type Zone } from "../text/times";

/** When a line was written, in the zone of the page. */
export function shownTime(time: string, zone: Zone): string {
  const ms = Date.parse(time);
  return Number.isNaN(ms) ? printable(time) : dateTime(ms * NS_PER_MS, zone);
}

/** Who asked, and what was shown for it. */
export function who(line: AuditLine): string {
  if (line.method === undefined) {
    return "the service";
  }
  const about = line.about === undefined || line.about === line.credential
    ? ""
    : ` about ${line.about}`;
  const name = line.credential ?? "-";
  return printable(`${name} (${line.kind ?? "no credential"})${about}`);
}

const EVENTS: Record<string, (line: AuditLine) => string> = {
  start: ({ program = "", faults = 0 }) =>
    `${program} started${faults > 0 ? `; the file had ${plural(faults, "fault")}` : ""}`,
  stop: () => "ended in order",
  torn: () => "the line before was torn",
  resumed: ({ why = "", refused = 0 }) =>
    `${plural(refused, "request")} refused: lines could not be written: ${why}`,
  exchanged: () => "this file was put in the place of another one",
  continued: ({ removed = [] }) =>
    removed.length === 0
      ? "a further file"
      : `a further file; removed: ${removed.map(({ file }) => file).join(", ")}`,
  unlisted: ({ count = 0 }) => `${plural(count, "request")} without a credential have no lines`,
};

/** What was asked, or what happened. */
export function what(line: AuditLine): string {
  const event = EVENTS[line.event];
  if (event) {
    return printable(event(line));
  }
  const parameters = line.parameters ? `?${line.parameters}` : "";
  const query = line.query ? `  query ${line.query}` : "";
  const volume = line.volume ? `  volume ${line.volume}` : "";
  return printable(`${line.method ?? ""} ${line.path ?? ""}${parameters}${query}${volume}`);
}

const ENDINGS: Record<string, string> = {
  complete: "complete",
  cut: "cut",
  client_left: "client left",
  broken_off: "broken off",
  refused: "refused",
};

/** What came of a request. */
export function came(line: AuditLine, hasEnd: boolean): string {
  if (line.method === undefined) {
    return "";
  }
  if (!hasEnd) {
    return "goes on, or was broken off";
  }
  const parts = [
    line.status === undefined ? "" : String(line.status),
    bytes(line.bytes ?? 0),
    line.ended === undefined ? "" : (ENDINGS[line.ended] ?? line.ended),
    line.cut_by === undefined ? "" : `by ${line.cut_by}`,
    line.took_ms === undefined ? "" : `${line.took_ms} ms`,
    line.sha256 === undefined ? "" : `sha256 ${line.sha256.slice(0, 16)}\u2026`,
  ];
  return printable(parts.filter((part) => part !== "").join(", "));
}
