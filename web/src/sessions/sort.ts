import type { Session } from "../api/types";
import type { Column } from "./columns";

/** A column by which the loaded rows are sorted. The recorder itself orders only by time. */
export interface Sorting {
  name: string;
  isDescending: boolean;
}

/** Reads "bytes" or "-bytes", which is descending. The words of the recorder's order are none. */
export function sortingOf(word: string): Sorting | null {
  if (["", "newest", "oldest"].includes(word)) {
    return null;
  }
  return { name: word.replace(/^-/, ""), isDescending: word.startsWith("-") };
}

/** What a click on a column asks for: the largest first, then the smallest, then time again. */
export function nextSorting(word: string, name: string): string {
  return { [`-${name}`]: name, [name]: "" }[word] ?? `-${name}`;
}

// Parts of addresses and names that are digits compare as numbers.
const collator = new Intl.Collator("en", { numeric: true });

function compare(a: number | string, b: number | string): number {
  return typeof a === "number" && typeof b === "number"
    ? a - b
    : collator.compare(String(a), String(b));
}

/** Rows without a value come last, in either direction. */
export function sorted(sessions: Session[], column: Column, isDescending: boolean): Session[] {
  const keyed = sessions.map((session) => ({ session, key: column.key(session) }));
  const sign = isDescending ? -1 : 1;
  return keyed
    .sort((a, b) => {
      const [left, right] = [a.key ?? "", b.key ?? ""];
      if (left === "" || right === "") {
        return Number(left === "") - Number(right === "");
      }
      return sign * compare(left, right);
    })
    .map(({ session }) => session);
}
