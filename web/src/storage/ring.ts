import type { Volume } from "../api/types";
import { plural } from "../text/numbers";

export interface RingPart {
  /** Stripes of this part, and of all that is held. */
  stripes: number;
  total: number;
  survives: number | undefined;
  text: string;
}

/** What the ring holds, from the oldest stripe to the newest, by the losses that it survives. */
export function ringParts({ redundancy = [] }: Volume): RingPart[] {
  const size = (part: { first_sequence: number; last_sequence: number }) =>
    Math.max(0, part.last_sequence - part.first_sequence + 1);
  const total = redundancy.reduce((sum, part) => sum + size(part), 0);
  return redundancy.map((part) => {
    const { first_sequence, last_sequence, survives_members: survives } = part;
    const stripes = size(part);
    const which = `${plural(stripes, "stripe")} (${first_sequence} to ${last_sequence})`;
    return { stripes, total, survives, text: `${which}: ${says(survives)}` };
  });
}

function says(survives: number | undefined): string {
  if (survives === undefined) {
    return "not complete";
  }
  return survives === 0
    ? "survives no further loss of a member"
    : `survives the loss of ${plural(survives, "more member")}`;
}
