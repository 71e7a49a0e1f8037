import type { WrongQuery } from "../api/problem";

export interface Mark {
  from: number;
  to: number;
}

/** The index in UTF-16 units of a byte of UTF-8. */
export function indexOfByte(text: string, byte: number): number {
  const encoder = new TextEncoder();
  let bytes = 0;
  let index = 0;
  for (const letter of text) {
    if (bytes >= byte) {
      break;
    }
    bytes += encoder.encode(letter).length;
    index += letter.length;
  }
  return index;
}

/** The word of a query that the recorder did not understand. At the end it is the last letter. */
export function markOf(query: string, { at }: WrongQuery): Mark {
  const from = Math.min(indexOfByte(query, at), Math.max(0, query.length - 1));
  const word = /^("(?:\\.|[^"\\])*"?|[^\s(){},]+)/.exec(query.slice(from));
  return { from, to: from + Math.max(1, word?.[0].length ?? 1) };
}

/** The query with the suggested word in the place of the wrong one. */
export function mended(query: string, wrong: WrongQuery): string {
  const { from, to } = markOf(query, wrong);
  return query.slice(0, from) + (wrong.suggestion ?? "") + query.slice(to);
}
