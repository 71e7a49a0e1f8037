import { printableAll } from "../text/printable";
import { serviceClock } from "./now.svelte";
import { outage } from "./outage.svelte";
import { isAbort, Problem, Unreachable } from "./problem";
import type {
  AuditCheck,
  AuditPage,
  Decoded,
  Diagnosis,
  Enrolment,
  ExtractRequest,
  Field,
  Held,
  Job,
  LoginWays,
  NewKey,
  NewKeyAsked,
  PacketAnswer,
  Proof,
  Qualification,
  RingMapAnswer,
  Session,
  SessionPage,
  Setting,
  Staff,
  Statement,
  Summary,
  Tag,
  TokenList,
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

/** A service that is stopped answers never, and would be taken for one that is well. */
const PATIENCE_MS = 10_000;

/** Statuses of a proxy in front of a recorder that is gone. */
const GATEWAY_STATUSES = [502, 504];

async function problemOf(response: Response): Promise<Problem> {
  const body: unknown = await response.json().catch(() => ({}));
  return new Problem(response.status, typeof body === "object" && body !== null ? body : {});
}

async function request<T>(url: string, init: RequestInit): Promise<T> {
  const response = await respond(url, init);
  try {
    const answer = (await response.json()) as T;
    outage.end();
    return answer;
  } catch (error) {
    // The connection broke in the middle of an answer.
    throw isAbort(error) ? error : new Unreachable();
  }
}

/** An answer of a line for each thing, and the name under which its statement is kept. */
async function requestLines<T>(
  url: string,
  signal?: AbortSignal,
): Promise<{ lines: T[]; answer: string }> {
  const headers = { Accept: "application/x-ndjson" };
  const response = await respond(url, { headers, signal: signal ?? null });
  try {
    const text = await response.text();
    outage.end();
    const lines = text.split("\n").filter((line) => line !== "");
    return {
      lines: lines.map((line) => JSON.parse(line) as T),
      answer: response.headers.get("wirespool-answer") ?? "",
    };
  } catch (error) {
    throw isAbort(error) ? error : new Unreachable();
  }
}

/** What came back, unless it is a problem. */
async function respond(url: string, init: RequestInit): Promise<Response> {
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
  serviceClock.heard(response.headers.get("date"));
  if (!response.ok) {
    const problem = await problemOf(response);
    if (GATEWAY_STATUSES.includes(response.status) && problem.word === "unknown") {
      outage.begin();
      throw new Unreachable();
    }
    outage.end();
    // Of a wrong password or code the session goes on.
    if (problem.word === "no-credential") {
      onLoggedOut();
    }
    throw problem;
  }
  return response;
}

function get<T>(path: string, parameters: Parameters, signal?: AbortSignal): Promise<T> {
  return request<T>(address(path, parameters), { signal: signal ?? null });
}

interface Sending {
  parameters?: Parameters;
  headers?: Record<string, string>;
  /** What is secret goes in the body: no log has it. */
  body?: unknown;
}

/** The heading is a guard: forms of other sites cannot send it. */
function send<T>(method: "POST" | "DELETE", path: string, sending: Sending = {}): Promise<T> {
  const { parameters, headers, body } = sending;
  const hasBody = body !== undefined;
  const type: Record<string, string> = hasBody ? { "Content-Type": "application/json" } : {};
  return request<T>(address(path, parameters), {
    method,
    headers: { "X-Wirespool": "1", ...type, ...headers },
    body: hasBody ? JSON.stringify(body) : null,
  });
}

export const loginWays = () => get<LoginWays>("login", {});
export const login = (token: string) =>
  send<Whoami>("POST", "login", { headers: { Authorization: `Bearer ${token}` } });
export const loginPerson = (name: string, proof: Proof) =>
  send<Whoami>("POST", "login", { body: { name, ...proof } });
export const makeFirst = (link: string, name: string, password: string) =>
  send<Whoami>("POST", "first", { body: { link, name, password } });
/** Where the browser goes to log in at the identity provider. */
export const beginAtProvider = () => send<{ location: string }>("POST", "login/provider");
export const finishAtProvider = (returned: Record<string, string>) =>
  send<Whoami>("POST", "login/provider/finish", { body: returned });
export const logout = () => send<unknown>("POST", "logout");

export const changePassword = (proof: Proof, newPassword: string) =>
  send<Whoami>("POST", "account/password", { body: { ...proof, new_password: newPassword } });
export const beginSecondFactor = (proof: Proof) =>
  send<Enrolment>("POST", "account/second-factor", { body: proof });
export const confirmSecondFactor = (code: string) =>
  send<{ recovery_codes: string[] }>("POST", "account/second-factor/confirm", { body: { code } });
export const endSecondFactor = (proof: Proof) =>
  send<Whoami>("DELETE", "account/second-factor", { body: proof });

export type AnyProof = Proof;
export const beginKey = (proof: Proof) =>
  send<NewKeyAsked>("POST", "account/keys", { body: proof });
export const confirmKey = (name: string, key: NewKey) =>
  send<{ recovery_codes: string[] }>("POST", "account/keys/confirm", { body: { name, key } });
export const endKey = (id: string, proof: Proof) =>
  send<Whoami>("DELETE", `account/keys/${encodeURIComponent(id)}`, { body: proof });

/** What an administrator does with an account; each answers with all of them. */
export type PersonChange = "disable" | "enable";

const person = (name: string) => `people/${encodeURIComponent(name)}`;
export const people = (signal?: AbortSignal) => get<Staff>("people", {}, signal);
export const addPerson = (name: string, role: string) =>
  send<{ password: string }>("POST", "people", { parameters: { name, role } });
export const changePerson = (name: string, change: PersonChange) =>
  send<Staff>("POST", `${person(name)}/${change}`);
export const giveRole = (name: string, role: string) =>
  send<Staff>("POST", `${person(name)}/role`, { parameters: { role } });
export const givePassword = (name: string) =>
  send<{ password: string }>("POST", `${person(name)}/password`);
export const resetSecondFactor = (name: string) =>
  send<Staff>("DELETE", `${person(name)}/second-factor`);
export const removePerson = (name: string) => send<Staff>("DELETE", person(name));

export const tokens = (signal?: AbortSignal) => get<TokenList>("tokens", {}, signal);
export const createToken = (parameters: Parameters) =>
  send<{ token: string }>("POST", "tokens", { parameters });
export const revokeToken = (name: string) =>
  send<TokenList>("DELETE", `tokens/${encodeURIComponent(name)}`);

export const audit = (parameters: Parameters, signal?: AbortSignal) =>
  get<AuditPage>("audit", parameters, signal);
export const checkAudit = () => get<AuditCheck>("audit/check", {});

export const whoami = () => get<Whoami>("whoami", {}, AbortSignal.timeout(PATIENCE_MS));

export async function volumes(): Promise<Volume[]> {
  const patience = AbortSignal.timeout(PATIENCE_MS);
  return (await get<{ volumes: Volume[] }>("volumes", {}, patience)).volumes;
}

/** Cells in a row, and rows of the map of a ring. */
const MAP = { columns: 64, rows: 24 };

export const ring = (volume: string, signal?: AbortSignal) =>
  get<RingMapAnswer>("ring", { volume, ...MAP }, signal);
export const qualification = (volume: string, signal?: AbortSignal) =>
  get<Qualification>("qualification", { volume }, signal);
export const findings = async (volume: string, signal?: AbortSignal) =>
  printableAll(await get<Diagnosis>("findings", { volume }, signal));

export const jobs = async (signal?: AbortSignal) =>
  printableAll(await get<{ jobs: Job[] }>("jobs", {}, signal));
export const job = (id: string) => get<Job>(`jobs/${encodeURIComponent(id)}`, {});
export const startJob = (parameters: Parameters) => send<Job>("POST", "jobs", { parameters });
export const cancelJob = (id: string) => send<Job>("DELETE", `jobs/${encodeURIComponent(id)}`);
/** Where a job says how it goes on. */
export const jobEvents = (id: string) => address(`jobs/${encodeURIComponent(id)}/events`);

export const tagsOf = (volume: string, session: string, signal?: AbortSignal) =>
  get<{ tags: Tag[] }>("tags", { volume, session }, signal);
export const addTag = (volume: string, session: string, tag: string) =>
  send<{ tags: Tag[] }>("POST", "tags", {
    parameters: { volume, query: `session_id ${session}`, tag },
  });
export const removeTag = (id: string) => send<Tag>("DELETE", `tags/${encodeURIComponent(id)}`);

export const hold = (volume: string, query: string) =>
  send<Held>("POST", "holds", { parameters: { volume, query } });

export const requests = async (signal?: AbortSignal) =>
  printableAll(await get<{ requests: ExtractRequest[] }>("requests", {}, signal));
export const askExtract = (parameters: Parameters) =>
  send<ExtractRequest>("POST", "requests", { parameters });
export const approve = (id: string) =>
  send<ExtractRequest>("POST", `requests/${encodeURIComponent(id)}/approve`);
export const endRequest = (id: string) =>
  send<ExtractRequest>("DELETE", `requests/${encodeURIComponent(id)}`);
export const approvedAddress = (id: string) =>
  address(`requests/${encodeURIComponent(id)}/extract`);

export const settings = async (signal?: AbortSignal) =>
  printableAll(await get<{ settings: Setting[] }>("settings", {}, signal));

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

/** What the recorder gives sorted: all at once, and its statement behind them. */
export async function sortedSessions(
  search: Search & { limit: number; sort: string },
  signal?: AbortSignal,
): Promise<SessionPage> {
  const { lines, answer } = await requestLines<Session>(address("sessions", { ...search }), signal);
  const { statement } = await get<{ statement: Statement | null }>(`answers/${answer}`, {}, signal);
  if (statement === null) {
    throw new Unreachable();
  }
  return { sessions: lines, count: lines.length, answer, statement, next_cursor: null };
}

export function summary(
  search: Search & {
    fields: string;
    limit: number;
    by: string;
    series?: string;
    over_time?: string;
  },
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

/** A line of each packet, or with a number all fields of that one, as tshark decodes them. */
export function decoded(
  search: Search & { limit: number; packet?: number },
  signal?: AbortSignal,
): Promise<Decoded> {
  return get<Decoded>("decode", { ...search }, signal);
}

/** More than this the recorder does not give at once. */
export const MOST_SESSIONS = 10_000;

export const extractAddress = (search: Search) => address("extract", { ...search });
