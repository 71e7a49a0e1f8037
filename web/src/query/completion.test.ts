import { describe, expect, it } from "vitest";
import type { Field } from "../api/types";
import { accepted, complete, seenValues } from "./completion";

const field = (name: string, kind: string, aliases: string[] = []): Field => ({
  name,
  kind,
  aliases,
  meaning: `meaning of ${name}`,
});
const known = {
  fields: [
    field("sni", "name", ["tls.sni"]),
    field("resp_port", "number"),
    field("tcp_sack", "yes/no", ["tcp.sack"]),
    field("state", "state"),
  ],
  values: new Map([["sni", ["www.example.com", "a b.example"]]]),
};
const words = (text: string, cursor = text.length) =>
  complete(text, cursor, known).suggestions.map((one) => one.insert);

describe("completion", () => {
  it("offers fields and words at the beginning and behind and, or, not", () => {
    expect(words("")).toContain("host");
    expect(words("sn")).toEqual(["sni"]);
    expect(words("port 53 and tcp")).toEqual(["tcp", "tcp_sack"]);
    expect(words("not (re")).toContain("resp_port");
  });

  it("offers operators behind a field, by its kind", () => {
    expect(words("sni ")).toContain("=");
    expect(words("sni ")).not.toContain(">");
    expect(words("resp_port ")).toContain(">=");
  });

  it("offers values behind an operator, also of aliases", () => {
    expect(words("sni = ")).toEqual(["www.example.com", '"a b.example"']);
    expect(words("tls.sni = www")).toEqual(["www.example.com"]);
    expect(words("tcp.sack = ")).toEqual(["yes", "no"]);
    expect(words("state in {S0, ")).toContain("SF");
  });

  it("offers and, or behind a condition", () => {
    expect(words("sni = www.example.com ")).toEqual(["and", "or", "and not"]);
  });

  it("replaces the word at the cursor only", () => {
    const text = "sn and port 53";
    const completion = complete(text, 2, known);
    const [first] = completion.suggestions;
    expect(first && accepted(text, completion, first)).toEqual({
      text: "sni and port 53",
      cursor: 3,
    });
  });

  it("takes names for numbers, as queries do", () => {
    const none = { sessions: 0, packets: 0, bytes: 0 };
    const value = { value: 28, name: "AAAA", text: "28 AAAA", query: "dns_types = 28", ...none };
    const top = { field: "dns_types", distinct: 1, absent: none, values: [value] };
    expect(seenValues([top]).get("dns_types")).toEqual(["AAAA"]);
  });

  it("is silent when the word is complete", () => {
    expect(words("sni = www.example.com")).toEqual([]);
  });
});
