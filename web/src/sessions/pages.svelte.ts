import * as client from "../api/client";
import { isAbort } from "../api/problem";
import type { Session, Statement } from "../api/types";

const PAGE = 200;

export type Order = "newest" | "oldest";

export interface Wanted {
  query: string;
  volume: string;
  order: Order;
}

/** The sessions of a query, page by page. */
export class Pages {
  sessions = $state.raw<Session[]>([]);
  statement = $state.raw<Statement | null>(null);
  error = $state.raw<unknown>(null);
  startedMs = $state<number | null>(null);
  cursor = $state<string | null>(null);
  isFirst = $state(true);

  #wanted: Wanted | null = null;
  #controller: AbortController | null = null;

  /** Asks anew. What is shown stays until the first page of the new answer is there. */
  async start(wanted: Wanted): Promise<void> {
    this.#wanted = wanted;
    this.isFirst = true;
    await this.#load(null);
  }

  /** Asks for the next page, if there is one and none is on its way. */
  async more(): Promise<void> {
    if (this.cursor !== null && this.startedMs === null && this.error === null) {
      await this.#load(this.cursor);
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
    const { query, volume, order } = wanted;
    const search = {
      query,
      volume,
      limit: PAGE,
      ...(order === "newest" ? { order } : {}),
      ...(cursor === null ? {} : { cursor }),
    };
    try {
      const page = await client.sessions(search, controller.signal);
      if (this.#controller !== controller) {
        return;
      }
      this.sessions = cursor === null ? page.sessions : [...this.sessions, ...page.sessions];
      this.statement = page.statement;
      this.cursor = page.next_cursor;
      this.isFirst = false;
    } catch (error) {
      if (this.#controller === controller && !isAbort(error)) {
        this.error = error;
        if (cursor === null) {
          this.sessions = [];
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
}
