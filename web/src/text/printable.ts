/** Controls, marks that change the direction of text, and signs without width. */
const HIDDEN = /[^\P{C}]|[\u2028\u2029]/gu;

const escaped = (letter: string) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`;

/**
 * Text that others have chosen, as the command line prints it: nothing in it can hide or change
 * the order of what stands beside it.
 */
export const printable = (text: string) => text.replace(HIDDEN, escaped);
