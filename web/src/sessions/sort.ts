/** A column by which the recorder sorts all sessions that match. */
export interface Sorting {
  name: string;
  isDescending: boolean;
}

/** Reads "bytes" or "-bytes", which is descending. The words for the order of time are none. */
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

/** Columns that show two fields are sorted by the first of them. */
const FIELDS: Record<string, string> = { orig: "orig_ip", resp: "resp_ip" };

/** The field that the recorder sorts by for a column. */
export const sortField = (column: string) => FIELDS[column] ?? column;

/** A sorting as the recorder takes it; empty for the order of time. */
export const sortWord = (sorting: Sorting | null) =>
  sorting ? `${sortField(sorting.name)}${sorting.isDescending ? ":desc" : ""}` : "";
