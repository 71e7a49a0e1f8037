import { isoUtc } from "../text/times";

/**
 * In the query language "and" and "or" have equal precedence, from left to right. So a condition
 * that is appended with "and" applies to all that stands before it, without parentheses.
 */
export function both(query: string, condition: string): string {
  const left = query.trim();
  const right = condition.trim();
  if (left === "" || right === "") {
    return left + right;
  }
  // A comment ends with its line.
  const blank = left.includes("#") ? "\n" : " ";
  return `${left}${blank}and ${right}`;
}

const isCompound = (condition: string) => /\s(and|or|&&|\|\|)\s/i.test(condition);
const single = (condition: string) => (isCompound(condition) ? `(${condition})` : condition);
const without = (condition: string) => `not (${condition})`;

/** The query narrowed to a condition; unchanged where it says so already. */
export function include(query: string, condition: string): string {
  const kept = dropped(query, without(condition));
  return has(kept, single(condition)) ? kept : both(kept, single(condition));
}

/** The query without what a condition selects. */
export function exclude(query: string, condition: string): string {
  const kept = dropped(query, single(condition));
  return has(kept, without(condition)) ? kept : both(kept, without(condition));
}

const has = (query: string, term: string) => terms(query)?.includes(term) ?? false;

/** Takes an own condition away again, only where the query is a plain row of "and". */
function dropped(query: string, term: string): string {
  const all = terms(query);
  return all?.includes(term) ? all.filter((one) => one !== term).join(" and ") : query;
}

/**
 * The conditions of a query that is a plain row of "and"; undefined of any other. What stands in
 * parentheses or in quotes is part of one condition.
 */
function terms(query: string): string[] | undefined {
  const found: string[] = [];
  let [depth, begin] = [0, 0];
  const tokens = /"(?:\\.|[^"\\])*"|[()[\]{}#]|&&|\|\||[^\s"()[\]{}#&|]+|[&|]/gs;
  for (const token of query.matchAll(tokens)) {
    const word = token[0].toLowerCase();
    if (word === "#") {
      return undefined;
    }
    depth += Number(/^[([{]$/.test(word)) - Number(/^[)\]}]$/.test(word));
    if (depth > 0) {
      continue;
    }
    if (word === "or" || word === "||") {
      return undefined;
    }
    if (word === "and" || word === "&&") {
      found.push(query.slice(begin, token.index).trim());
      begin = token.index + word.length;
    }
  }
  return [...found, query.slice(begin).trim()];
}

/** A value as queries take it: in quotes where it has blanks or signs of the language. */
export function quoted(value: string): string {
  const isPlain = /^[\p{L}\p{N}_.:-]+$/u.test(value) && !/^(and|or|not|in|has)$/i.test(value);
  return isPlain ? value : `"${value.replace(/[\\"*]/g, "\\$&")}"`;
}

export const equals = (field: string, value: string | number | boolean) =>
  typeof value === "boolean"
    ? `${field} = ${value ? "yes" : "no"}`
    : `${field} = ${quoted(String(value))}`;

export const between = (fromNs: number, toNs: number) =>
  `after ${isoUtc(fromNs)} and before ${isoUtc(toNs)}`;

/** A command line that asks the same, for a POSIX shell. */
export function findCommand(volume: string, query: string): string {
  return `wirespool find ${shellWord(volume)} ${shellWord(query)}`;
}

/** A command that asks the same over HTTP, with a token in the variable TOKEN of the shell. */
export function curlCommand(url: string, file?: string): string {
  const output = file === undefined ? "" : ` -o ${shellWord(file)}`;
  return `curl -f -H "Authorization: Bearer $TOKEN" ${shellWord(url)}${output}`;
}

export function shellWord(text: string): string {
  return /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}
