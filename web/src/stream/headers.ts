/** What headers of a packet say, field by field, and which bytes say it. */

import type { Span } from "./bytes";

export interface HeaderField extends Span {
  layer: string;
  name: string;
  value: string;
}

const ETHER = { ipv4: 0x0800, arp: 0x0806, ipv6: 0x86dd, mpls: 0x8847, pppoe: 0x8864 };
const VLANS = [0x8100, 0x88a8, 0x9100];
const LINK = { ethernet: 1, raw: [12, 14, 101, 228, 229], sll: 113, sll2: 276, loops: [0, 108] };
const PROTOCOLS: Record<number, string> = {
  1: "ICMP", 4: "IPv4", 6: "TCP", 17: "UDP", 41: "IPv6", 47: "GRE", 58: "ICMPv6", 132: "SCTP",
};
const FLAGS = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
const TCP_OPTIONS: Record<number, string> = {
  2: "maximum segment size", 3: "window scale", 4: "SACK permitted", 5: "SACK", 8: "timestamps",
};
/** Headers of IPv6 that say what comes behind them. */
const EXTENSIONS: Record<number, string> = {
  0: "hop-by-hop options", 43: "routing", 44: "fragment", 60: "destination options",
};

/** Reads fields from left to right. What was not captured is not read. */
class Reader {
  at = 0;
  readonly fields: HeaderField[] = [];
  readonly #view: DataView;
  #layer = "";

  constructor(readonly bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  begin(layer: string): void {
    this.#layer = layer;
  }

  has(length: number): boolean {
    return this.at + length <= this.bytes.length;
  }

  number(width: 1 | 2 | 4, ahead = 0): number {
    const at = this.at + ahead;
    if (at + width > this.bytes.length) {
      return NaN;
    }
    return width === 1 ? this.#view.getUint8(at)
      : width === 2 ? this.#view.getUint16(at) : this.#view.getUint32(at);
  }

  /** A field of so many bytes, whose value is shown as this says. */
  take(name: string, length: number, text: (at: number) => string): void {
    if (length > 0 && this.has(length)) {
      const [from, to] = [this.at, this.at + length];
      this.fields.push({ layer: this.#layer, name, value: text(from), from, to });
    }
    this.at += length;
  }

  count(name: string, width: 1 | 2 | 4, text = (value: number) => String(value)): number {
    const value = this.number(width);
    this.take(name, width, () => text(value));
    return value;
  }
}

const hex = (value: number, digits = 4) => `0x${value.toString(16).padStart(digits, "0")}`;
const named = (protocol: number) => {
  const name = PROTOCOLS[protocol] ?? EXTENSIONS[protocol];
  return name === undefined ? String(protocol) : `${protocol} (${name})`;
};

function mac(reader: Reader, name: string, length = 6): void {
  reader.take(name, length, (at) =>
    [...reader.bytes.subarray(at, at + length)]
      .map((byte) => byte.toString(16).padStart(2, "0"))
      .join(":"),
  );
}

function ipv4Address(reader: Reader, name: string): void {
  reader.take(name, 4, (at) => reader.bytes.subarray(at, at + 4).join("."));
}

/** As RFC 5952 writes it: the longest run of zeros is left out. */
export function ipv6Text(bytes: Uint8Array): string {
  const groups = Array.from({ length: 8 }, (_, at) =>
    (((bytes[2 * at] ?? 0) << 8) | (bytes[2 * at + 1] ?? 0)).toString(16),
  );
  const runs = groups.map((_, at) => {
    const end = groups.findIndex((group, place) => place >= at && group !== "0");
    return (end < 0 ? groups.length : end) - at;
  });
  const longest = Math.max(...runs);
  if (longest < 2) {
    return groups.join(":");
  }
  const at = runs.indexOf(longest);
  return `${groups.slice(0, at).join(":")}::${groups.slice(at + longest).join(":")}`;
}

function ipv6Address(reader: Reader, name: string): void {
  reader.take(name, 16, (at) => ipv6Text(reader.bytes.subarray(at, at + 16)));
}

/** The fields of a packet's headers; those that are not known end the list. */
export function headerFields(bytes: Uint8Array, linkType: number): HeaderField[] {
  const reader = new Reader(bytes);
  if (linkType === LINK.ethernet) {
    ethernet(reader);
  } else if (linkType === LINK.sll) {
    cooked(reader);
  } else if (linkType === LINK.sll2) {
    cookedTwo(reader);
  } else if (LINK.loops.includes(linkType)) {
    reader.begin("Loopback");
    reader.take("family", 4, (at) => bytes.subarray(at, at + 4).join(" "));
    ip(reader);
  } else if (LINK.raw.includes(linkType)) {
    ip(reader);
  }
  return reader.fields;
}

function ethernet(reader: Reader): void {
  reader.begin("Ethernet");
  mac(reader, "destination");
  mac(reader, "source");
  byType(reader, reader.count("type", 2, hex));
}

function cooked(reader: Reader): void {
  reader.begin("Linux cooked capture");
  reader.count("packet type", 2);
  reader.count("device type", 2);
  reader.count("address length", 2);
  mac(reader, "address", 8);
  byType(reader, reader.count("type", 2, hex));
}

function cookedTwo(reader: Reader): void {
  reader.begin("Linux cooked capture 2");
  const type = reader.count("type", 2, hex);
  reader.count("reserved", 2);
  reader.count("interface", 4);
  reader.count("device type", 2);
  reader.count("packet type", 1);
  reader.count("address length", 1);
  mac(reader, "address", 8);
  byType(reader, type);
}

function byType(reader: Reader, type: number): void {
  if (VLANS.includes(type)) {
    reader.begin("VLAN");
    reader.count("priority and VLAN", 2, (tag) => `VLAN ${tag & 0xfff}, priority ${tag >> 13}`);
    byType(reader, reader.count("type", 2, hex));
  } else if (type === ETHER.mpls) {
    reader.begin("MPLS");
    let isLast = false;
    while (!isLast && reader.has(4)) {
      const label = reader.count("label", 4, (word) => `${word >>> 12}, TTL ${word & 255}`);
      isLast = ((label >>> 8) & 1) === 1;
    }
    ip(reader);
  } else if (type === ETHER.pppoe) {
    reader.begin("PPPoE");
    reader.count("version, type, code", 2, hex);
    reader.count("session", 2);
    reader.count("length", 2);
    const isIp = [0x0021, 0x0057].includes(reader.count("protocol", 2, hex));
    if (isIp) {
      ip(reader);
    }
  } else if (type === ETHER.arp) {
    arp(reader);
  } else if (type === ETHER.ipv4 || type === ETHER.ipv6) {
    ip(reader);
  }
}

function arp(reader: Reader): void {
  reader.begin("ARP");
  reader.count("hardware", 2);
  const isIpv4 = reader.count("protocol", 2, hex) === ETHER.ipv4;
  reader.count("lengths", 2, hex);
  reader.count("operation", 2, (one) => `${one}${{ 1: " (asks)", 2: " (tells)" }[one] ?? ""}`);
  if (isIpv4) {
    mac(reader, "sender");
    ipv4Address(reader, "sender");
    mac(reader, "target");
    ipv4Address(reader, "target");
  }
}

function ip(reader: Reader): void {
  const version = reader.number(1) >> 4;
  if (version === 4) {
    ipv4(reader);
  } else if (version === 6) {
    ipv6(reader);
  }
}

function ipv4(reader: Reader): void {
  const words = reader.number(1) & 15;
  reader.begin("IPv4");
  reader.count("version and header length", 1, () => `4, ${4 * words} bytes`);
  reader.count("DSCP and ECN", 1, (one) => `${one >> 2}, ${one & 3}`);
  reader.count("total length", 2);
  reader.count("identification", 2, hex);
  const fragment = reader.count("flags and fragment", 2, fragmentText);
  reader.count("TTL", 1);
  const protocol = reader.count("protocol", 1, named);
  reader.count("checksum", 2, hex);
  ipv4Address(reader, "source");
  ipv4Address(reader, "destination");
  reader.take("options", 4 * (words - 5), () => `${4 * (words - 5)} bytes`);
  // Behind a fragment that is not the first there is no header.
  if ((fragment & 0x1fff) === 0 && words >= 5) {
    byProtocol(reader, protocol);
  }
}

function fragmentText(word: number): string {
  const flags = [word & 0x4000 ? "do not fragment" : "", word & 0x2000 ? "more fragments" : ""];
  return [...flags.filter((flag) => flag !== ""), `from byte ${8 * (word & 0x1fff)}`].join(", ");
}

function ipv6(reader: Reader): void {
  reader.begin("IPv6");
  reader.count("version, class, flow label", 4, (word) =>
    `6, ${(word >>> 20) & 255}, ${hex(word & 0xfffff, 5)}`,
  );
  reader.count("payload length", 2);
  let next = reader.count("next header", 1, named);
  reader.count("hop limit", 1);
  ipv6Address(reader, "source");
  ipv6Address(reader, "destination");
  while (EXTENSIONS[next] !== undefined && reader.has(8)) {
    const name = EXTENSIONS[next] ?? "";
    const length = next === 44 ? 8 : 8 * (1 + reader.number(1, 1));
    const isLater = next === 44 && reader.number(2, 2) >> 3 > 0;
    next = reader.number(1);
    reader.take(name, length, () => `${length} bytes, then ${named(next)}`);
    if (isLater) {
      return;
    }
  }
  byProtocol(reader, next);
}

function byProtocol(reader: Reader, protocol: number): void {
  if (protocol === 6) {
    tcp(reader);
  } else if (protocol === 17) {
    reader.begin("UDP");
    reader.count("source port", 2);
    reader.count("destination port", 2);
    reader.count("length", 2);
    reader.count("checksum", 2, hex);
  } else if (protocol === 1 || protocol === 58) {
    reader.begin(PROTOCOLS[protocol] ?? "");
    reader.count("type", 1);
    reader.count("code", 1);
    reader.count("checksum", 2, hex);
  } else if (protocol === 132) {
    reader.begin("SCTP");
    reader.count("source port", 2);
    reader.count("destination port", 2);
    reader.count("verification tag", 4, (tag) => hex(tag, 8));
    reader.count("checksum", 4, (sum) => hex(sum, 8));
  } else if (protocol === 47) {
    gre(reader);
  } else if (protocol === 4 || protocol === 41) {
    ip(reader);
  }
}

function gre(reader: Reader): void {
  reader.begin("GRE");
  const flags = reader.count("flags and version", 2, hex);
  const type = reader.count("type", 2, hex);
  if (flags & 0x8000) {
    reader.count("checksum", 4, (sum) => hex(sum, 8));
  }
  if (flags & 0x2000) {
    reader.count("key", 4);
  }
  if (flags & 0x1000) {
    reader.count("sequence number", 4);
  }
  if ((flags & 7) === 0) {
    byType(reader, type);
  }
}

function tcp(reader: Reader): void {
  const start = reader.at;
  reader.begin("TCP");
  reader.count("source port", 2);
  reader.count("destination port", 2);
  reader.count("sequence number", 4);
  reader.count("acknowledgement", 4);
  const end = start + 4 * (reader.number(1) >> 4);
  reader.count("header length and flags", 2, (word) => {
    const flags = FLAGS.filter((_, bit) => word & (1 << bit));
    return `${4 * (word >> 12)} bytes, ${flags.join(" ") || "no flag"}`;
  });
  reader.count("window", 2);
  reader.count("checksum", 2, hex);
  reader.count("urgent pointer", 2);
  tcpOptions(reader, Math.min(end, reader.bytes.length));
}

function tcpOptions(reader: Reader, end: number): void {
  while (reader.at < end) {
    const kind = reader.number(1);
    if (kind <= 1) {
      reader.take(kind === 0 ? "end of options" : "no operation", 1, () => String(kind));
      continue;
    }
    const length = reader.number(1, 1);
    // A length that leads nowhere: the rest cannot be read.
    if (!(length >= 2) || reader.at + length > end) {
      return;
    }
    const width = length - 2;
    const isNumber = width === 1 || width === 2 || width === 4;
    const value = isNumber ? String(reader.number(width, 2)) : `${width} bytes`;
    const stamps = `${reader.number(4, 2)}, echo ${reader.number(4, 6)}`;
    reader.take(TCP_OPTIONS[kind] ?? `option ${kind}`, length, () =>
      kind === 8 && width === 8 ? stamps : width === 0 ? "yes" : value,
    );
  }
}
