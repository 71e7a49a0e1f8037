import { describe, expect, it } from "vitest";
import {
  between,
  both,
  curlCommand,
  equals,
  exclude,
  findCommand,
  include,
  quoted,
} from "./compose";

describe("a condition", () => {
  it("applies to all that stands before it", () => {
    expect(both("", "port 53")).toBe("port 53");
    expect(both("port 53", " ")).toBe("port 53");
    expect(both("port 53 or port 80", "app dns")).toBe("port 53 or port 80 and app dns");
  });

  it("stands behind a comment on a line of its own", () => {
    expect(both("port 53 # names", "app dns")).toBe("port 53 # names\nand app dns");
  });

  it("is included once", () => {
    const once = include("port 53", "orig_ip = 10.0.0.1");
    expect(once).toBe("port 53 and orig_ip = 10.0.0.1");
    expect(include(once, "orig_ip = 10.0.0.1")).toBe(once);
  });

  it("is in parentheses where it has several parts", () => {
    expect(include("port 53", "a = 1 or b = 2")).toBe("port 53 and (a = 1 or b = 2)");
  });

  it("leaves what stands in parentheses or quotes as it is", () => {
    const query = "not (port 53 and app = ssh and udp)";
    expect(exclude(query, "app = ssh")).toBe(`${query} and not (app = ssh)`);
    const text = 'user_agent = "a and app = ssh"';
    expect(exclude(text, "app = ssh")).toBe(`${text} and not (app = ssh)`);
    expect(exclude("port 53 # x\n and app = ssh", "app = ssh")).toContain("# x\n and app = ssh");
  });

  it("is appended where an or may lead around it", () => {
    const query = "app = ssh and port 22 or port 53";
    expect(include(query, "app = ssh")).toBe(`${query} and app = ssh`);
    expect(include("(a = 1 or b = 2) and c = 3", "c = 3")).toBe("(a = 1 or b = 2) and c = 3");
  });

  it("is excluded, and replaces the same one that was included", () => {
    expect(exclude("", "app = dns")).toBe("not (app = dns)");
    expect(exclude("port 53 and app = dns", "app = dns")).toBe("port 53 and not (app = dns)");
    expect(include("not (app = dns)", "app = dns")).toBe("app = dns");
  });

  it("changes nothing between alternatives", () => {
    expect(exclude("app = dns or app = tls", "app = tls")).toBe(
      "app = dns or app = tls and not (app = tls)",
    );
  });
});

describe("values", () => {
  it("have quotes where they need them", () => {
    expect(quoted("www.example.com")).toBe("www.example.com");
    expect(quoted("2001:db8::1")).toBe("2001:db8::1");
    expect(quoted("a b")).toBe('"a b"');
    expect(quoted("a*")).toBe('"a\\*"');
    expect(quoted('say "no"\\')).toBe('"say \\"no\\"\\\\"');
    expect(quoted("")).toBe('""');
    expect(quoted("or")).toBe('"or"');
    expect(equals("tcp_sack", false)).toBe("tcp_sack = no");
    expect(equals("resp_port", 443)).toBe("resp_port = 443");
  });
});

describe("texts to copy", () => {
  it("bound times in UTC", () => {
    expect(between(1_795_000_000e9, 1_795_000_060.25e9)).toBe(
      "after 2026-11-18T11:06:40Z and before 2026-11-18T11:07:40.25Z",
    );
  });

  it("are safe in a shell", () => {
    expect(findCommand("/data/spool", "port 53")).toBe("wirespool find /data/spool 'port 53'");
    expect(findCommand("a b", "sni it's")).toBe("wirespool find 'a b' 'sni it'\\''s'");
  });
});

describe("a command for curl", () => {
  it("names the token's variable, and quotes the address", () => {
    const url = "http://127.0.0.1:8420/api/v1/extract?query=app+dns&volume=v";
    expect(curlCommand(url, "v.pcapng")).toBe(
      `curl -f -H "Authorization: Bearer $TOKEN" '${url}' -o v.pcapng`,
    );
  });
});
