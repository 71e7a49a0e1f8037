/** Names of the numbers that DNS has for types and response codes (IANA). */
const TYPES: Record<number, string> = {
  1: "A",
  2: "NS",
  5: "CNAME",
  6: "SOA",
  12: "PTR",
  15: "MX",
  16: "TXT",
  28: "AAAA",
  33: "SRV",
  35: "NAPTR",
  43: "DS",
  46: "RRSIG",
  48: "DNSKEY",
  52: "TLSA",
  64: "SVCB",
  65: "HTTPS",
  255: "ANY",
};
const RCODES = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];

/** The name of a value of `dns_types` or `dns_rcodes`; nothing for other fields. */
export function dnsName(field: string, value: string | number | boolean): string | undefined {
  if (typeof value !== "number") {
    return undefined;
  }
  return field === "dns_types" ? TYPES[value] : field === "dns_rcodes" ? RCODES[value] : undefined;
}
