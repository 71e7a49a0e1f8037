import { describe, expect, it } from "vitest";
import { returnedOf } from "./provider";

describe("what a provider sends back", () => {
  it("is a code with its state, or an error", () => {
    expect(returnedOf("?code=c&state=s")).toEqual({ code: "c", state: "s" });
    expect(returnedOf("?code=c&state=s&iss=https%3A%2F%2Fi")).toEqual({
      code: "c",
      state: "s",
      iss: "https://i",
    });
    expect(returnedOf("?error=access_denied&state=s")).toEqual({ error: "access_denied" });
  });

  it("is nothing else", () => {
    const long = `?state=s&code=${"c".repeat(5000)}`;
    for (const search of ["", "?", "?code=c", "?state=s", "?x=1", long]) {
      expect(returnedOf(search), search).toBeNull();
    }
  });
});
