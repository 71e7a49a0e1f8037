import { describe, expect, it } from "vitest";
import { headerFields, ipv6Text } from "./headers";

const bytes = (text: string) =>
  Uint8Array.from(text.match(/[0-9a-f]{2}/g) ?? [], (pair) => parseInt(pair, 16));

const ETHERNET = "001122334455 00aabbccddee";
const IPV4 = "4500 0030 1234 4000 40 06 abcd 01020304 05060708";
const TCP = "0050 04d2 0000000a 0000000b 7012 0100 0000 0000 020405b4 01 01 0402";
const said = (text: string, link = 1) =>
  headerFields(bytes(text), link).map(({ layer, name, value }) => `${layer} ${name}: ${value}`);

describe("the fields of headers", () => {
  it("of TCP in IPv4 in a VLAN have their bytes", () => {
    const packet = `${ETHERNET} 8100 6064 0800 ${IPV4} ${TCP} 61626364`;
    expect(said(packet)).toEqual(expect.arrayContaining([
      "Ethernet source: 00:aa:bb:cc:dd:ee",
      "VLAN priority and VLAN: VLAN 100, priority 3",
      "IPv4 flags and fragment: do not fragment, from byte 0",
      "IPv4 protocol: 6 (TCP)",
      "IPv4 destination: 5.6.7.8",
      "TCP sequence number: 10",
      "TCP header length and flags: 28 bytes, SYN ACK",
      "TCP maximum segment size: 1460",
      "TCP SACK permitted: yes",
    ]));
    const fields = headerFields(bytes(packet), 1);
    // One behind the other, from the first byte to the payload.
    expect(fields[0]?.from).toBe(0);
    fields.slice(1).forEach((field, at) => expect(field.from).toBe(fields[at]?.to));
    expect(fields.at(-1)?.to).toBe(bytes(packet).length - 4);
  });

  it("of IPv6 go through extension headers and tunnels", () => {
    const ends = `20010db8${"0".repeat(23)}1 ${"0".repeat(31)}1`;
    const udp = "0035 0035 0008 0000";
    expect(said(`60000000 0010 3c 40 ${ends} 1100 000000000000 ${udp}`, 101)).toEqual(
      expect.arrayContaining([
        "IPv6 source: 2001:db8::1", "IPv6 destination: ::1",
        "IPv6 destination options: 8 bytes, then 17 (UDP)", "UDP source port: 53",
      ]),
    );
    const inner = `4500 001c 0000 0000 40 11 0000 0a000001 0a000002 ${udp}`;
    const gre = `4500 0034 0000 0000 40 2f 0000 01020304 05060708 2000 0800 00000007 ${inner}`;
    expect(said(gre, 12)).toEqual(expect.arrayContaining(["GRE key: 7", "UDP length: 8"]));
  });

  it("end where the packet was cut, or nothing is known", () => {
    const whole = bytes(`${ETHERNET} 0800 ${IPV4} ${TCP}`);
    for (let length = 0; length <= whole.length; length += 1) {
      const fields = headerFields(whole.subarray(0, length), 1);
      expect(fields.every(({ to }) => to <= length)).toBe(true);
      expect(fields.every(({ value }) => !value.includes("NaN"))).toBe(true);
    }
    expect(said(`${ETHERNET} 88cc 0207`)).toHaveLength(3);
    expect(said("00", 9999)).toEqual([]);
  });

  it("of a later fragment has no ports", () => {
    const later = IPV4.replace("4000", "2001");
    expect(said(`${ETHERNET} 0800 ${later} ${TCP}`).some((one) => one.startsWith("TCP"))).toBe(
      false,
    );
  });

  it("of options that lie about their length are left out", () => {
    for (const option of ["0200", "02ff", "0201"]) {
      const packet = `${ETHERNET} 0800 ${IPV4} ${TCP.replace("0204", option)}`;
      expect(headerFields(bytes(packet), 1).at(-1)?.name).toBe("urgent pointer");
    }
  });

  it("with any bytes are within the packet", () => {
    let seed = 7;
    const next = () => (seed = (seed * 48271) % 2147483647) & 255;
    for (let round = 0; round < 3000; round += 1) {
      const packet = Uint8Array.from({ length: next() % 90 }, next);
      packet.set([0x08, 0x00, (round % 2 ? 0x40 : 0x60) + (next() & 15)].slice(0, packet.length));
      for (const link of [1, 12, 113, 276, 0]) {
        const fields = headerFields(packet, link);
        expect(fields.every(({ from, to }) => from < to && to <= packet.length)).toBe(true);
      }
    }
  });

  it("writes addresses of IPv6 as RFC 5952 does", () => {
    expect(ipv6Text(bytes("20010db8000000000001000000000001"))).toBe("2001:db8::1:0:0:1");
    expect(ipv6Text(bytes("20010db8000100010001000100010001"))).toBe("2001:db8:1:1:1:1:1:1");
    expect(ipv6Text(new Uint8Array(16))).toBe("::");
  });
});
