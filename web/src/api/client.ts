import { outage } from "./outage.svelte";
import { isAbort, Problem, Unreachable } from "./problem";
import type {
  Field,
  PacketAnswer,
  SessionPage,
  Summary,
  Volume,
  Whoami,
} from "./types";

type Parameters = Record<string, string | number | undefined>;

/** Called when the recorder says that nobody is logged in. */
let onLoggedOut: () => void = () => undefined;

export function whenLoggedOut(callback: () => void): void {
  onLoggedOut = callback;
}

export function address(path: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== "") {
      query.set(name, String(value));
    }
  }
  const text = query.toString();
  return `/api/v1/${path}${text === "" ? "" : `?${text}`}`;
}

/** Statuses of a proxy in front of a recorder that is gone. */
const GATEWAY_STATUSES = [502, 504];

async function problemOf(response: Response): Promise<Problem> {
  const body: unknown = await response.json().catch(() => ({}));
  return new Problem(response.status, typeof body === "object" && body !== null ? body : {});
}

async function request<T>(url: string, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: "same-origin", cache: "no-store", ...init });
  } catch (error) {
    if (isAbort(error)) {
      throw error;
    }
    outage.begin();
    throw new Unreachable();
  }
  if (!response.ok) {
    const problem = await problemOf(response);
    if (GATEWAY_STATUSES.includes(response.status) && problem.word === "unknown") {
      outage.begin();
      throw new Unreachable();
    }
    outage.end();
    if (response.status === 401) {
      onLoggedOut();
    }
    throw problem;
  }
  try {
    const answer = (await response.json()) as T;
    outage.end();
    return answer;
  } catch (error) {
    // The connection broke in the middle of an answer.
    throw isAbort(error) ? error : new Unreachable();
  }
}

function get<T>(path: string, parameters: Parameters, signal?: AbortSignal): Promise<T> {
  return request<T>(address(path, parameters), { signal: signal ?? null });
}

/** The heading is a guard: forms of other sites cannot send it. */
function post<T>(path: string, headers: Record<string, string> = {}): Promise<T> {
  return request<T>(address(path), {
    method: "POST",
    headers: { "X-Wirespool": "1", ...headers },
  });
}

export const login = (token: string) =>
  post<Whoami>("login", { Authorization: `Bearer ${token}` });
export const logout = () => post<unknown>("logout");
export const whoami = () => get<Whoami>("whoami", {});

export async function volumes(signal?: AbortSignal): Promise<Volume[]> {
  return (await get<{ volumes: Volume[] }>("volumes", {}, signal)).volumes;
}

export async function fields(): Promise<Field[]> {
  return (await get<{ fields: Field[] }>("fields", {})).fields;
}

export interface Search {
  query: string;
  volume: string;
}

export function sessions(
  search: Search & { limit: number; cursor?: string; order?: "newest" },
  signal?: AbortSignal,
): Promise<SessionPage> {
  return get<SessionPage>("sessions", { ...search }, signal);
}

export function summary(
  search: Search & { fields: string; limit: number; by: string },
  signal?: AbortSignal,
): Promise<Summary> {
  return get<Summary>("summary", { ...search }, signal);
}

export function packets(
  search: Search & { limit: number },
  signal?: AbortSignal,
): Promise<PacketAnswer> {
  return get<PacketAnswer>("packets", { ...search }, signal);
}

/** More than this the recorder does not give at once. */
export const MOST_SESSIONS = 10_000;

export const extractAddress = (search: Search) => address("extract", { ...search });
