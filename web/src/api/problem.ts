/** A place in a query that the recorder did not understand. `at` counts bytes of UTF-8. */
export interface WrongQuery {
  at: number;
  suggestion?: string;
  shown: string;
}

/** What a key of a person is asked, by who has shown the password. */
export interface KeyAsked {
  challenge: string;
  rp_id: string;
  origin: string;
  credentials: string[];
}

/** What counts as a second factor. */
export interface FactorAsked {
  authenticator: boolean;
  key: KeyAsked | null;
}

interface ProblemBody {
  type?: string;
  title?: string;
  detail?: string;
  query?: WrongQuery;
  retry_after_s?: number;
  second_factor?: FactorAsked;
}

/** An answer of the recorder that is no success. */
export class Problem extends Error {
  readonly word: string;
  readonly detail: string | undefined;
  readonly query: WrongQuery | undefined;
  /** Seconds that the next attempt has to wait, from when this came on. */
  readonly retryAfterS: number | undefined;
  readonly secondFactor: FactorAsked | undefined;

  constructor(
    readonly status: number,
    body: ProblemBody,
  ) {
    super(body.title ?? `The recorder answered with status ${status}.`);
    this.word = body.type?.split(":").pop() ?? "unknown";
    this.detail = body.detail;
    this.query = body.query;
    this.retryAfterS = body.retry_after_s;
    this.secondFactor = body.second_factor;
  }
}

/** The recorder could not be reached, or its answer broke off. */
export class Unreachable extends Error {
  constructor() {
    super("The recorder does not answer.");
  }
}

const ADVICE: Record<string, string> = {
  "no-credential": "Log in again.",
  "no-scope": "Your role or token does not permit it. An administrator can change that.",
  "must-change-password": "Change your password first.",
  administrator: "Make somebody else an administrator first.",
  taken: "Choose another name.",
  "not-written": "Look at the file and its folder: who may write there, and is the disk full?",
  "not-found": "It may have been overwritten, or the link is of another service. Search again.",
  "wrong-parameter": "Go back to the sessions and try again from there.",
  "wrong-query": "Correct the query at the place that is underlined.",
  "too-long": "Shorten the query: at most 32 KiB are allowed.",
  busy: "Too many requests are waiting. Try again in a moment.",
  "no-worker": "The machine could not start a process. Try again in a moment.",
  "too-late": "The answer took too long. Choose a shorter time range.",
  damaged: "Part of the volume is damaged. `wirespool verify VOLUME` says what.",
  unreadable: "The volume cannot be read. Look at the Storage view.",
  "not-decoded": "Go on without tshark. The service's log and --tshark say which program it is.",
  "no-key": "Start the service with --identity FILE, which has the private key of a recipient.",
  "worker-ended": "The process that answered has ended. Choose a shorter range and try again.",
};

/** What the reader can do about an error. */
export function advice(error: unknown): string {
  if (error instanceof Problem) {
    return ADVICE[error.word] ?? "Try again. The recorder's log says more.";
  }
  if (error instanceof Unreachable) {
    return "The page tries again by itself.";
  }
  return "Load the page again. If it stays, the browser's console says more.";
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
