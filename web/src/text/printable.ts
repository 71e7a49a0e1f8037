import { grouped } from "./numbers";

/** Controls, marks that change the direction of text, and signs without width. */
const HIDDEN = /[^\P{C}]|[\u2028\u2029]/gu;

const escaped = (letter: string) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`;

/**
 * Text that others have chosen, as the command line prints it: nothing in it can hide or change
 * the order of what stands beside it.
 */
export const printable = (text: string) => text.replace(HIDDEN, escaped);

/** More than this of a text nobody reads, and browsers take minutes to lay some of it out. */
const LONGEST = 1000;

/** The same, of what is long only its beginning. */
export function brief(text: string): string {
  const cut = text.length > LONGEST ? text.slice(0, LONGEST) : text;
  return cut === text ? printable(text)
    : `${printable(cut)}\u2026 (${grouped(text.length)} characters)`;
}

/** The same for each text of an answer that is only shown. */
export function printableAll<T>(answer: T): T {
  if (typeof answer === "string") {
    return printable(answer) as T;
  }
  if (Array.isArray(answer)) {
    return answer.map((one: unknown) => printableAll(one)) as T;
  }
  if (answer !== null && typeof answer === "object") {
    const entries = Object.entries(answer).map(([key, value]) => [key, printableAll(value)]);
    return Object.fromEntries(entries) as T;
  }
  return answer;
}
