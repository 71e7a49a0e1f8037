import { nowMs } from "../api/now.svelte";
import * as client from "../api/client";
import { outage } from "../api/outage.svelte";
import type { Field, Volume, Whoami } from "../api/types";
import { RateHistory } from "../overview/rates";
import { LatencyHistory } from "../storage/latency";
import { place } from "../route/location.svelte";

const POLL_MS = 2000;
const SAMPLES = 1800;

/** What all views share: who is logged in, the fields, and the newest state of the volumes. */
class Recorder {
  whoami = $state.raw<Whoami | null>(null);
  isChecked = $state(false);
  fields = $state.raw<Field[]>([]);
  volumes = $state.raw<Volume[] | null>(null);
  volumesError = $state.raw<unknown>(null);
  askedMs = $state(0);
  /** By volume id. Replaced with each sample, so that plots notice. */
  rates = $state.raw<ReadonlyMap<string, RateHistory>>(new Map());

  latencies = $state.raw<ReadonlyMap<string, LatencyHistory>>(new Map());

  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    client.whenLoggedOut(() => {
      this.whoami = null;
      this.isChecked = true;
    });
    document.addEventListener("visibilitychange", () => this.poll());
  }

  /** The volume that the address names, else the first one. */
  get volume(): string {
    return place.parameter("v") || (this.whoami?.volumes[0]?.name ?? "");
  }

  /** As commands on the recorder's machine name it. */
  get volumePath(): string {
    const known = this.volumes?.find((volume) => volume.name === this.volume);
    return known?.path ?? this.volume;
  }

  can(scope: string): boolean {
    return this.whoami?.scopes.includes(scope) ?? false;
  }

  get isRecording(): boolean {
    return this.volumes?.some((volume) => volume.interfaces !== undefined) ?? false;
  }

  async check(): Promise<void> {
    try {
      await this.enter(await client.whoami());
    } catch {
      // Not logged in, or not reachable: the banner and the poll say which.
    }
    this.isChecked = true;
    this.poll();
  }

  async login(token: string): Promise<void> {
    await this.enter(await client.login(token));
    this.poll();
  }

  /** After a login or a change of the own account. */
  async enterAs(whoami: Whoami): Promise<void> {
    await this.enter(whoami);
    this.poll();
  }

  async logout(): Promise<void> {
    await client.logout().catch(() => undefined);
    this.whoami = null;
    this.volumes = null;
  }

  private async enter(whoami: Whoami): Promise<void> {
    this.whoami = whoami;
    // Nothing else is permitted before.
    if (whoami.person?.must_change_password) {
      return;
    }
    this.fields = await client.fields().catch(() => []);
  }

  private poll(): void {
    clearTimeout(this.#timer);
    if (document.visibilityState !== "visible") {
      return;
    }
    const again = () => {
      // Two questions may have ended: one of them goes on.
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.poll(), POLL_MS);
    };
    void this.ask().finally(again);
  }

  private async ask(): Promise<void> {
    if (this.whoami?.person?.must_change_password) {
      return;
    }
    if (!this.whoami) {
      if (outage.sinceMs !== null) {
        await client.whoami().then(
          (whoami) => this.enter(whoami),
          () => undefined,
        );
      }
      return;
    }
    try {
      this.volumes = await client.volumes();
      this.volumesError = null;
      this.askedMs = nowMs();
      this.sample(this.volumes);
    } catch (error) {
      this.volumesError = error;
    }
  }

  private sample(volumes: Volume[]): void {
    const sampled = volumes.map((volume): [string, RateHistory] => {
      const history = this.rates.get(volume.volume_id) ?? new RateHistory(SAMPLES);
      return [volume.volume_id, history.with(volume, nowMs())];
    });
    this.rates = new Map(sampled);
    const latencies = volumes.map((volume): [string, LatencyHistory] => {
      const history = this.latencies.get(volume.volume_id) ?? new LatencyHistory(SAMPLES);
      return [volume.volume_id, history.with(volume, nowMs())];
    });
    this.latencies = new Map(latencies);
  }
}

export const recorder = new Recorder();
