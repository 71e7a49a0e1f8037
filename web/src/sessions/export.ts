import type { FieldValue, Session } from "../api/types";
import { printable } from "../text/printable";

/** Text that a spreadsheet would take for a formula, behind apostrophes and blanks or not. */
const FORMULA = /^'*[\t\r\n\0]*[=+\-@]/;
/** A cell as `wirespool find --csv` writes it (docs/query.md). */
export function cell(value: FieldValue | undefined): string {
  if (value === undefined) {
    return "";
  }
  if (Array.isArray(value)) {
    return quoted(value.map((one) => safe(String(one)).replace(/\|/g, "\\u{7c}")).join("|"));
  }
  return quoted(typeof value === "string" ? safe(value) : String(value));
}

function safe(text: string): string {
  const shown = printable(text.replace(/\\(?=u\{)/g, "\\u{5c}"));
  return FORMULA.test(text) ? `'${shown}` : shown;
}

const quoted = (text: string) => (/[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);

export function csv(sessions: Session[]): string {
  const names = [...new Set(sessions.flatMap((session) => Object.keys(session)))];
  const line = (session: Session) => names.map((name) => cell(session[name])).join(",");
  return `${[names.join(","), ...sessions.map(line)].join("\n")}\n`;
}
