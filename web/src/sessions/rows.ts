import type { Session } from "../api/types";

/** Rows in memory: some 100 MB of what the recorder says of sessions. */
const KEPT_MOST = 40_000;

interface Page {
  /** What asks for it; null for the first one. */
  cursor: string | null;
  start: number;
  count: number;
  /** Null where it was given up for memory. */
  rows: readonly Session[] | null;
}

/**
 * Rows of an answer that came page by page. Pages far from where somebody looks are given up, and
 * asked for again by their cursors, so that millions of rows take no more memory than thousands.
 */
export class Rows {
  #pages: Page[] = [];
  #kept = 0;

  get length(): number {
    const last = this.#pages.at(-1);
    return last ? last.start + last.count : 0;
  }

  /** All that are in memory, in their order. */
  get kept(): Session[] {
    return this.#pages.flatMap(({ rows }) => rows ?? []);
  }

  get first(): Session | undefined {
    return this.#pages[0]?.rows?.[0];
  }

  add(cursor: string | null, rows: readonly Session[]): void {
    this.#pages.push({ cursor, start: this.length, count: rows.length, rows });
    this.#kept += rows.length;
  }

  at(row: number): Session | undefined {
    const page = this.#pageOf(row);
    return page?.rows?.[row - page.start];
  }

  /** Rows from `first` to before `last`; undefined where they were given up. */
  slice(first: number, last: number): (Session | undefined)[] {
    const end = Math.min(last, this.length);
    return Array.from({ length: Math.max(0, end - first) }, (_, at) => this.at(first + at));
  }

  /** The first page between two rows that was given up. */
  missing(first: number, last: number): { cursor: string | null; start: number } | null {
    for (let row = first; row < Math.min(last, this.length); ) {
      const page = this.#pageOf(row);
      if (!page) {
        return null;
      }
      if (page.rows === null) {
        return page;
      }
      row = page.start + page.count;
    }
    return null;
  }

  /**
   * Puts a page back. Rows behind the next cursor may have been overwritten since: a page has its
   * place, whether it got shorter or not.
   */
  restore(start: number, rows: readonly Session[]): void {
    const page = this.#pages.find((one) => one.start === start);
    if (page && page.rows === null) {
      page.rows = rows.slice(0, page.count);
      this.#kept += page.rows.length;
    }
  }

  /** Gives up what is farthest from a row, until few enough are kept. */
  keepAround(row: number, most = KEPT_MOST): void {
    let [low, high] = [0, this.#pages.length - 1];
    while (this.#kept > most && low < high) {
      const [first, last] = [this.#pages[low], this.#pages[high]];
      if (!first || !last) {
        return;
      }
      const isFirstFarther = row - first.start > last.start - row;
      const farther = isFirstFarther ? first : last;
      this.#kept -= farther.rows?.length ?? 0;
      farther.rows = null;
      low += isFirstFarther ? 1 : 0;
      high -= isFirstFarther ? 0 : 1;
    }
  }

  #pageOf(row: number): Page | undefined {
    let [low, high] = [0, this.#pages.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const page = this.#pages[middle];
      if (page && page.start + page.count <= row) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const page = this.#pages[low];
    return page && page.start <= row ? page : undefined;
  }
}
