import { describe, expect, it } from "vitest";
import { formatRoute, parseRoute, tokenOf } from "./route";

describe("routes", () => {
  it("are read as they were written", () => {
    const parameters = { q: 'sni "a b" and port 53', t: "1h" };
    const { view, parameters: read } = parseRoute(formatRoute("sessions", parameters));
    expect(view).toBe("sessions");
    expect(read).toEqual(parameters);
    expect(parseRoute(formatRoute("session", { tab: "stream" }, "7.0-3"))).toEqual({
      view: "session",
      id: "7.0-3",
      parameters: { tab: "stream" },
    });
  });

  it("have no parameters without a value", () => {
    expect(formatRoute("sessions", { q: "", t: "all" })).toBe("#/sessions?t=all");
  });

  it("fall back to the overview", () => {
    for (const hash of ["", "#", "#/nothing", "#/session", "#/%E0%A4%A"]) {
      expect(parseRoute(hash).view).toBe("overview");
    }
  });

  it("keep an id that is badly escaped", () => {
    expect(parseRoute("#/session/7%E0")).toMatchObject({ view: "session", id: "7%E0" });
  });
});

describe("a link with a token", () => {
  it("is recognised in both forms", () => {
    expect(tokenOf("#token=wirespool_abc")).toBe("wirespool_abc");
    expect(tokenOf("#/token=wirespool_abc")).toBe("wirespool_abc");
    expect(tokenOf("#/sessions?q=port+53")).toBeNull();
  });
});
