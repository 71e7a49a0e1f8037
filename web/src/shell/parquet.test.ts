import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { describe, expect, it } from "vitest";
import { parquet, tableOf, type Table } from "./parquet";

/** Read by a library that knows nothing of this page. */
async function read(table: Table) {
  const file = parquet(table).buffer;
  expect(Number(parquetMetadata(file).num_rows)).toBe(table.columns[0]?.length ?? 0);
  return parquetReadObjects({ file });
}

describe("a table as Parquet", () => {
  it("has numbers, texts, flags and absent values as they are", async () => {
    const names = ["int", "real", "text", "flag", "none"];
    const rows = Array.from({ length: 300 }, (_, at) => at);
    const columns = [
      rows.map((at) => (at % 3 === 0 ? undefined : at * 2 ** 40 - 7)),
      rows.map((at) => at / 4),
      rows.map((at) => (at % 5 < 2 ? undefined : `"${at}", \u202e<b>\u{1f600}`)),
      rows.map((at) => (at % 7 === 0 ? undefined : at % 2 === 0)),
      rows.map(() => undefined),
    ];
    const found = await read({ names, columns });
    expect(found).toHaveLength(300);
    rows.forEach((at) => {
      const { int, real, text, flag, none } = found[at] ?? {};
      expect(int ?? undefined).toEqual(at % 3 === 0 ? undefined : BigInt(at * 2 ** 40 - 7));
      expect(real).toBe(at / 4);
      expect(text ?? undefined).toBe(columns[2]?.[at]);
      expect(flag ?? undefined).toBe(columns[3]?.[at]);
      expect(none ?? undefined).toBeUndefined();
    });
  });

  it("may have no rows, and more columns than a short list", async () => {
    expect(await read({ names: ["a"], columns: [[]] })).toEqual([]);
    const names = Array.from({ length: 40 }, (_, at) => `column ${at}`);
    const [row] = await read({ names, columns: names.map((name) => [name]) });
    expect(Object.entries(row ?? {})).toEqual(names.map((name) => [name, name]));
  });

  it("of sessions has a column for each field, lists with bars", async () => {
    const table = tableOf([
      { session_id: "1.0-0", dns_names: ["a", "b"], orig_port: 53 },
      { session_id: "1.0-1", sni: "x" },
    ]);
    const found = await read(table);
    expect(found[0]).toMatchObject({ dns_names: "a|b", orig_port: 53n });
    expect(found[1]).toMatchObject({ session_id: "1.0-1", sni: "x" });
  });
});
