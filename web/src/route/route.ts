/** What the address says: the view, what it shows, and its parameters. */
export interface Route {
  view: View;
  /** The session of the session view. */
  id: string;
  parameters: Readonly<Record<string, string>>;
}

export const VIEWS = [
  "overview",
  "sessions",
  "session",
  "talkers",
  "dns",
  "storage",
  "findings",
  "jobs",
  "requests",
  "settings",
  "people",
  "audit",
  "account",
  "first",
] as const;
export type View = (typeof VIEWS)[number];

const isView = (word: string): word is View => (VIEWS as readonly string[]).includes(word);

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A truncated link: what stands there is better than nothing.
    return text;
  }
}

/** Reads "#/sessions?q=port+53". Anything else is the overview. */
export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const [path = "", query = ""] = splitOnce(text, "?");
  const [view = "", id = ""] = splitOnce(path, "/");
  const parameters = Object.fromEntries(new URLSearchParams(query));
  const isKnown = isView(view) && (view !== "session" || id !== "");
  return { view: isKnown ? view : "overview", id: isKnown ? decoded(id) : "", parameters };
}

export function formatRoute(view: View, parameters: Record<string, string> = {}, id = ""): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== "") {
      query.set(name, value);
    }
  }
  const text = query.toString();
  const path = id === "" ? view : `${view}/${encodeURIComponent(id)}`;
  return `#/${path}${text === "" ? "" : `?${text}`}`;
}

/** The token of a link "#token=...", which logs in. */
export function tokenOf(hash: string): string | null {
  return new URLSearchParams(hash.replace(/^#\/?/, "")).get("token");
}

function splitOnce(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
