/** Browsers draw no box that is much higher (17 895 700 pixels in Firefox). */
export const HIGHEST_PX = 8_000_000;

export interface Scrolled {
  /** Where the browser has scrolled to. */
  top: number;
  /** Where that is in rows that are as high as they are. */
  virtual: number;
}

interface Sizes {
  total: number;
  view: number;
}

export const boxHeight = (total: number) => Math.min(total, HIGHEST_PX);

function ratio({ total, view }: Sizes): number {
  const way = boxHeight(total) - view;
  return way > 0 ? (total - view) / way : 1;
}

const within = (value: number, { total, view }: Sizes) =>
  Math.max(0, Math.min(Math.max(0, total - view), value));

/**
 * Where the rows are after the browser has scrolled. A box that is too high for the browser stands
 * for more rows than it has pixels: a step of a wheel goes as far as in any other box, and a drag
 * of the scroll bar goes to its share of all rows.
 */
export function scrolledTo(top: number, before: Scrolled, sizes: Sizes): Scrolled {
  const step = top - before.top;
  const isEnd = top <= 0 || top >= boxHeight(sizes.total) - sizes.view;
  if (sizes.total <= HIGHEST_PX || isEnd || Math.abs(step) > 2 * sizes.view) {
    return { top, virtual: within(top * ratio(sizes), sizes) };
  }
  return { top, virtual: within(before.virtual + step, sizes) };
}

/** Where the browser has to scroll to for this place among the rows. */
export const topOf = (virtual: number, sizes: Sizes) => within(virtual, sizes) / ratio(sizes);
