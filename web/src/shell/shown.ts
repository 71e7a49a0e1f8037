import { cell } from "../sessions/export";
import type { Head } from "./heads";
import type { Cell, Table } from "./parquet";

/** As it is shown, but where a cell has its value without units. */
function textOf(one: HTMLTableCellElement): string {
  const select = one.querySelector("select");
  return one.dataset["value"] ?? select?.value ?? one.innerText.trim().replace(/\s+/g, " ");
}

/** What a table shows. Rows that say something else than a row of values are none. */
export function shownTable(table: HTMLTableElement, heads: Head[]): Table {
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
  const cells = rows.map((row) => [...row.cells]).filter((row) => row.length === heads.length);
  const kept = heads.map((head, at) => ({ head, at }));
  const exported = kept.filter(({ head }) => head.isExported !== false);
  return {
    names: exported.map(({ head }) => head.title),
    columns: exported.map(({ head, at }) =>
      columnOf(cells.map((row) => row[at]), head.isNumber ?? false),
    ),
  };
}

/** Numbers where each cell has one or none. */
function columnOf(cells: (HTMLTableCellElement | undefined)[], isNumber: boolean): Cell[] {
  const texts = cells.map((one) => (one ? textOf(one) : ""));
  // Narrow blanks part the digits of what is shown.
  const numbers = texts.map((text) => text.replace(/\u202f/g, ""));
  const areNumbers = isNumber && numbers.every((text) => text === "" || !isNaN(Number(text)));
  return areNumbers ? numbers.map((text) => (text === "" ? undefined : Number(text))) : texts;
}

export function csvOf({ names, columns }: Table): string {
  const rows = Array.from({ length: columns[0]?.length ?? 0 }, (_, at) =>
    columns.map((column) => cell(column[at])).join(","),
  );
  return `${[names.map((name) => cell(name)).join(","), ...rows].join("\n")}\n`;
}
