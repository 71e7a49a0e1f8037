import type { Proof } from "../api/types";

/** What was typed, without a code where there is none. */
export function proofOf(password: string, code: string): Proof {
  return code === "" ? { password } : { password, code };
}
