import type { RingCell, RingMapAnswer } from "../api/types";
import { grouped, plural } from "../text/numbers";

/** A cell, and where it is drawn. */
export interface Placed {
  cell: RingCell;
  index: number;
  x: number;
  y: number;
}

export const CELL = 10;
const ZONE_GAP = 5;

export interface Layout {
  placed: Placed[];
  width: number;
  height: number;
}

/** Rows of cells, zone below zone, from the outside of the disk to its inside. */
export function layout({ cells, columns }: RingMapAnswer): Layout {
  const across = Math.max(1, columns);
  const placed: Placed[] = [];
  let [top, zone, inZone] = [0, cells[0]?.zone ?? 0, 0];
  cells.forEach((cell, index) => {
    if (cell.zone !== zone) {
      top += Math.ceil(inZone / across) * CELL + ZONE_GAP;
      [zone, inZone] = [cell.zone, 0];
    }
    const x = (inZone % across) * CELL;
    placed.push({ cell, index, x, y: top + Math.floor(inZone / across) * CELL });
    inZone += 1;
  });
  return { placed, width: across * CELL, height: top + Math.ceil(inZone / across) * CELL };
}

/** Of which colour a cell is. */
export type Shade = "unwritten" | "ahead" | "opening" | "damaged" | `age${number}`;

export function shadeOf({ content, age }: RingCell): Shade {
  if (content === "written" || content === "left_early") {
    return `age${Math.min(9, age ?? 9)}`;
  }
  return content === "ahead_of_head" ? "ahead" : content;
}

const CONTENTS: Record<RingCell["content"], string> = {
  unwritten: "never written",
  written: "stripes",
  left_early: "stripes, left early",
  opening: "an opening of the volume",
  ahead_of_head: "ahead of the head: to be overwritten next",
  damaged: "damaged: no member shows it",
};

/** A cell in words. */
export function wordsOf(cell: RingCell, slotsPerCell: number): string {
  const last = cell.place + Math.min(cell.slots, slotsPerCell) - 1;
  const damaged = cell.damaged_members ?? [];
  const parts = [
    `Zone ${cell.zone}, slots ${grouped(cell.place)} to ${grouped(last)}`,
    CONTENTS[cell.content],
    cell.sequence === undefined ? "" : `stripe ${grouped(cell.sequence)}`,
    cell.age === undefined ? "" : `in tenth ${cell.age + 1} of 10 by age, the first is the newest`,
    cell.head ? "the head" : "",
    cell.tail ? "the oldest stripe" : "",
    cell.index ? "the index of a segment" : "",
    (cell.holds ?? 0) > 0 ? `packets of ${plural(cell.holds ?? 0, "hold")}` : "",
    damaged.length > 0 ? `not shown by member ${damaged.join(", ")}` : "",
  ];
  return parts.filter((part) => part !== "").join("; ");
}

export interface ZoneRow {
  zone: number;
  cells: number;
  written: number;
  unwritten: number;
  ahead: number;
  damaged: number;
  holds: number;
  hasHead: boolean;
}

/** The same as a table, a row for each zone. */
export function zoneRows({ cells }: RingMapAnswer): ZoneRow[] {
  const rows = new Map<number, ZoneRow>();
  for (const cell of cells) {
    const row = rows.get(cell.zone) ?? {
      zone: cell.zone,
      cells: 0,
      written: 0,
      unwritten: 0,
      ahead: 0,
      damaged: 0,
      holds: 0,
      hasHead: false,
    };
    const isDamaged = cell.content === "damaged" || (cell.damaged_members ?? []).length > 0;
    rows.set(cell.zone, {
      ...row,
      cells: row.cells + 1,
      written: row.written + (shadeOf(cell).startsWith("age") ? 1 : 0),
      unwritten: row.unwritten + (cell.content === "unwritten" ? 1 : 0),
      ahead: row.ahead + (cell.content === "ahead_of_head" ? 1 : 0),
      damaged: row.damaged + (isDamaged ? 1 : 0),
      holds: row.holds + ((cell.holds ?? 0) > 0 ? 1 : 0),
      hasHead: row.hasHead || cell.head === true,
    });
  }
  return [...rows.values()];
}
