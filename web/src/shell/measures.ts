import type { Measure } from "../api/types";

export const MEASURES: readonly Measure[] = ["bytes", "packets", "sessions"];

/** What the address says, else what is usual in a view. */
export const measureOf = (word: string, usual: Measure): Measure =>
  MEASURES.find((one) => one === word) ?? usual;
