import { expect, it } from "vitest";
import { csv } from "./export";

it("a spreadsheet takes no value for a formula", () => {
  const text = csv([{ session_id: "1", sni: '=cmd("x")' }, { session_id: "2", sni: "'-1" }]);
  expect(text).toBe('session_id,sni\n1,"\'=cmd(""x"")"\n2,\'\'-1\n');
});

it("lists and hidden letters are escaped", () => {
  const text = csv([{ session_id: "1", dns_names: ["a|b", "c\u001b\n"] }]);
  expect(text).toBe("session_id,dns_names\n1,a\\u{7c}b|c\\u{1b}\\u{a}\n");
});

it("absent values are empty", () => {
  const text = csv([{ session_id: "1", app: "dns" }, { session_id: "2" }]);
  expect(text).toBe("session_id,app\n1,dns\n2,\n");
});
