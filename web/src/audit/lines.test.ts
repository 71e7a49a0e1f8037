import { describe, expect, it } from "vitest";
import type { AuditLine } from "../api/types";
import { came, shownTime, what, who } from "./lines";

const request: AuditLine = {
  seq: 2,
  time: "2026-11-28T09:00:00.5Z",
  event: "request",
  credential: "anna",
  kind: "person",
  from: "127.0.0.1:1",
  method: "GET",
  path: "/api/v1/sessions",
  parameters: "limit=1",
  query: "port 53\u202e",
  status: 200,
  bytes: 2048,
  ended: "complete",
  took_ms: 7,
};

describe("a line of the audit", () => {
  it("says who asked what and what came out", () => {
    expect(who(request)).toBe("anna (person)");
    expect(what(request)).toBe("GET /api/v1/sessions?limit=1  query port 53\\u{202e}");
    expect(came(request, true)).toBe("200, 2.00\u202fKiB, complete, 7 ms");
    expect(came(request, false)).toBe("goes on, or was broken off");
    expect(shownTime(request.time, "utc")).toBe("2026-11-28 09:00:00.500");
  });

  it("says whose login failed", () => {
    const { seq, time } = request;
    const login = { seq, time, event: "request", about: "bert", kind: "password", method: "POST" };
    expect(who(login)).toBe("- (password) about bert");
  });

  it("tells of the service itself", () => {
    const start = { seq: 1, time: "x\u0007", event: "start", program: "wirespool 1", faults: 1 };
    expect(who(start)).toBe("the service");
    expect(what(start)).toBe("wirespool 1 started; the file had 1 fault");
    expect(came(start, true)).toBe("");
    expect(shownTime(start.time, "utc")).toBe("x\\u{7}");
  });
});
