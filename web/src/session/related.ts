import type { Session } from "../api/types";
import { equals } from "../query/compose";
import { printable } from "../text/printable";

export interface Related {
  title: string;
  query: string;
}

/** Queries for sessions that have something in common with this one. */
export function related(session: Session): Related[] {
  const found: Related[] = [];
  const add = (title: string, field: string, name = field) => {
    const value = [session[field]].flat()[0];
    if (value !== undefined && value !== "") {
      found.push({ title: `${title} ${printable(String(value))}`, query: equals(name, value) });
    }
  };
  const [orig, resp] = [session["orig_ip"], session["resp_ip"]];
  if (typeof orig === "string" && typeof resp === "string") {
    found.push({ title: "The same two hosts", query: `host ${orig} and host ${resp}` });
  }
  add("Originator", "orig_ip", "host");
  add("Responder", "resp_ip", "host");
  add("Server name", "sni");
  add("HTTP host", "http_host");
  add("DNS name", "dns_names");
  add("JA4", "ja4");
  add("JA3", "ja3");
  add("HASSH", "hassh");
  add("Certificate of", "cert_subject");
  add("Community id", "community_id");
  return found;
}
