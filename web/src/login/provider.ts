import { printable } from "../text/printable";

/** What an identity provider sends the browser back with. */
export type Returned = Record<string, string>;

const LENGTH_MAX = 4096;

/** Reads "?code=...&state=..." or "?error=...&state=..."; null of any other address. */
export function returnedOf(search: string): Returned | null {
  const parameters = new URLSearchParams(search);
  const [code, state, error] = ["code", "state", "error"].map((name) => parameters.get(name));
  if (search.length > LENGTH_MAX || typeof state !== "string") {
    return null;
  }
  if (typeof error === "string") {
    return { error };
  }
  const issuer = parameters.get("iss");
  if (typeof code !== "string") {
    return null;
  }
  return { code, state, ...(issuer === null ? {} : { iss: issuer }) };
}

/** What a provider says instead of a code, in words. */
export function refusalOf(returned: Returned): Error | null {
  const error = returned["error"];
  if (error === undefined) {
    return null;
  }
  const word = printable(error).slice(0, 100);
  return new Error(`The identity provider has not logged you in: ${word}`);
}
