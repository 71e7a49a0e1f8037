import * as client from "../api/client";
import { isAbort } from "../api/problem";
import type { Session, SessionPage, Statement } from "../api/types";
import { Rows } from "./rows";

/** Rows of the first page, which is to be there soon, and of those behind it. */
const FIRST_PAGE = 200;
const PAGE = 1000;

export type Order = "newest" | "oldest";

export interface Wanted {
  query: string;
  volume: string;
  order: Order;
  /** A field by which the recorder sorts all that match, with ":desc"; empty for order of time. */
  sort: string;
}

/** The sessions of a query, page by page. What is sorted comes at once, up to a limit. */
export class Pages {
  statement = $state.raw<Statement | null>(null);
  error = $state.raw<unknown>(null);
  startedMs = $state<number | null>(null);
  cursor = $state<string | null>(null);
  isFirst = $state(true);
  /** Grows with each answer that begins anew. */
  answer = $state(0);
  /** Rows that are known, in memory or not. */
  length = $state(0);

  #rows = new Rows();
  /** Grows with each change of the rows, which are too many to be watched one by one. */
  #version = $state(0);
  #limit = PAGE;
  #wanted: Wanted | null = null;
  #controller: AbortController | null = null;
  #back: AbortController | null = null;

  /** Asks anew. What is shown stays until the first page of the new answer is there. */
  async start(wanted: Wanted): Promise<void> {
    this.#wanted = wanted;
    this.isFirst = true;
    this.#limit = PAGE;
    await this.#load(null);
  }

  slice(first: number, last: number): (Session | undefined)[] {
    void this.#version;
    return this.#rows.slice(first, last);
  }

  at(row: number): Session | undefined {
    return this.#rows.at(row);
  }

  /** Those in memory, to be saved. */
  get kept(): Session[] {
    return this.#rows.kept;
  }

  /** Whether there are sorted rows that were not asked for. */
  get canSortMore(): boolean {
    const isCut = this.statement?.cut_by === "limit";
    return this.#wanted?.sort !== "" && isCut && this.length < client.MOST_SESSIONS;
  }

  async sortMore(): Promise<void> {
    this.#limit = client.MOST_SESSIONS;
    await this.#load(null);
  }

  /** Asks for the next page, if there is one and none is on its way. */
  async more(): Promise<void> {
    if (this.cursor !== null && this.startedMs === null && this.error === null) {
      await this.#load(this.cursor);
    }
  }

  /** Has rows that somebody looks at in memory, and gives up those far from them. */
  async look(first: number, last: number): Promise<void> {
    this.#rows.keepAround(first);
    const page = this.#rows.missing(first, last);
    const wanted = this.#wanted;
    if (!page || !wanted || this.#back) {
      return;
    }
    const controller = new AbortController();
    this.#back = controller;
    try {
      const { sessions } = await this.#ask(wanted, page.cursor, controller.signal);
      if (this.#back === controller) {
        this.#rows.restore(page.start, sessions);
        this.#version += 1;
      }
    } catch (error) {
      if (this.#back === controller && !isAbort(error)) {
        this.error = error;
      }
    } finally {
      if (this.#back === controller) {
        this.#back = null;
      }
    }
  }

  async retry(): Promise<void> {
    await this.#load(this.isFirst ? null : this.cursor);
  }

  abort(): void {
    this.#controller?.abort();
    this.#controller = null;
    this.startedMs = null;
  }

  #ask(wanted: Wanted, cursor: string | null, signal: AbortSignal): Promise<SessionPage> {
    const { query, volume, order, sort } = wanted;
    if (sort !== "") {
      return client.sortedSessions({ query, volume, sort, limit: this.#limit }, signal);
    }
    const search = {
      query,
      volume,
      limit: cursor === null ? FIRST_PAGE : PAGE,
      ...(order === "newest" ? { order } : {}),
      ...(cursor === null ? {} : { cursor }),
    };
    return client.sessions(search, signal);
  }

  async #load(cursor: string | null): Promise<void> {
    const wanted = this.#wanted;
    if (!wanted) {
      return;
    }
    this.abort();
    const controller = new AbortController();
    this.#controller = controller;
    this.startedMs = Date.now();
    this.error = null;
    try {
      const page = await this.#ask(wanted, cursor, controller.signal);
      if (this.#controller === controller) {
        this.#take(cursor, page);
      }
    } catch (error) {
      if (this.#controller === controller && !isAbort(error)) {
        this.error = error;
        if (cursor === null) {
          this.#clear();
          this.statement = null;
          this.cursor = null;
        }
      }
    } finally {
      if (this.#controller === controller) {
        this.startedMs = null;
      }
    }
  }

  #take(cursor: string | null, page: SessionPage): void {
    if (cursor === null) {
      this.#clear();
    }
    this.#rows.add(cursor, page.sessions);
    this.length = this.#rows.length;
    this.#version += 1;
    this.statement = page.statement;
    this.cursor = page.next_cursor;
    this.isFirst = false;
  }

  #clear(): void {
    this.#back?.abort();
    this.#back = null;
    this.#rows = new Rows();
    this.length = 0;
    this.answer += 1;
    this.#version += 1;
  }
}
