import { nowMs } from "./now.svelte";
/** Whether the recorder answers. Views ask again when `returns` changes. */
class Outage {
  sinceMs = $state<number | null>(null);
  returns = $state(0);

  begin(): void {
    this.sinceMs ??= nowMs();
  }

  end(): void {
    if (this.sinceMs !== null) {
      this.sinceMs = null;
      this.returns += 1;
    }
  }
}

export const outage = new Outage();
