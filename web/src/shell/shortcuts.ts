import { place } from "../route/location.svelte";
import { defaultRange } from "./range";

export type Destination =
  | "overview"
  | "sessions"
  | "talkers"
  | "dns"
  | "storage"
  | "findings"
  | "jobs"
  | "requests"
  | "settings"
  | "people"
  | "audit"
  | "account";
export type Shortcut = "help" | "theme" | "zone" | "query" | Destination;

const DESTINATIONS: Record<string, Destination> = {
  o: "overview",
  s: "sessions",
  t: "talkers",
  d: "dns",
  r: "storage",
  f: "findings",
  j: "jobs",
  x: "requests",
  e: "settings",
  p: "people",
  a: "audit",
};
const ACTIONS: Record<string, Shortcut> = { "?": "help", t: "theme", u: "zone", "/": "query" };
/** How long "g" waits for the letter of a view. */
const PREFIX_MS = 1500;

let prefixMs = 0;

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && target.matches("input, textarea, select");

/** What a key asks for; nothing while somebody writes. */
export function shortcut(event: KeyboardEvent): Shortcut | null {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) {
    return null;
  }
  const isPrefixed = Date.now() - prefixMs < PREFIX_MS;
  prefixMs = 0;
  if (isPrefixed) {
    return DESTINATIONS[event.key] ?? null;
  }
  if (event.key === "g") {
    prefixMs = Date.now();
    return null;
  }
  return ACTIONS[event.key] ?? null;
}

/** Goes to a view, with the volume that is chosen. */
export function goesTo(view: Destination): void {
  place.go(view, parametersOf(view));
}

export function parametersOf(view: Destination): Record<string, string> {
  const v = place.parameter("v");
  const hasRange = view === "sessions" || view === "talkers" || view === "dns";
  return hasRange ? { v, t: place.parameter("t") || defaultRange() } : { v };
}
