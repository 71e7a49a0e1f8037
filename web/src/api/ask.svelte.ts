import { isAbort, Unreachable } from "./problem";

/**
 * One question that a view has open at a time. A new one aborts the one before, so an old answer
 * never overwrites a newer one.
 */
export class Ask<T> {
  value = $state.raw<T | null>(null);
  error = $state.raw<unknown>(null);
  startedMs = $state<number | null>(null);

  #controller: AbortController | null = null;

  get isLoading(): boolean {
    return this.startedMs !== null;
  }

  async run(question: (signal: AbortSignal) => Promise<T>): Promise<void> {
    this.abort();
    const controller = new AbortController();
    this.#controller = controller;
    this.startedMs = Date.now();
    this.error = null;
    try {
      const value = await question(controller.signal);
      if (this.#controller === controller) {
        this.value = value;
      }
    } catch (error) {
      if (this.#controller === controller && !isAbort(error)) {
        this.error = error;
        // What was shown is no answer to this question. While the recorder is gone it stays.
        if (!(error instanceof Unreachable)) {
          this.value = null;
        }
      }
    } finally {
      if (this.#controller === controller) {
        this.startedMs = null;
      }
    }
  }

  abort(): void {
    this.#controller?.abort();
    this.#controller = null;
    this.startedMs = null;
  }
}
