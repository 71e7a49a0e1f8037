/** A brush that keys move. Places are parts of the time that is shown, from 0 to 1. */
export interface Brush {
  at: number;
  /** Where the choice began; nothing before that. */
  from: number | null;
}

export const MIDDLE: Brush = { at: 0.5, from: null };

const STEPS: Record<string, number> = {
  ArrowLeft: -0.01,
  ArrowDown: -0.01,
  ArrowRight: 0.01,
  ArrowUp: 0.01,
  PageDown: -0.1,
  PageUp: 0.1,
  Home: -1,
  End: 1,
};

const bounded = (at: number) => Math.max(0, Math.min(1, Math.round(at * 1000) / 1000));

/**
 * What a key makes of the brush: another brush, the word "zoom", or nothing for keys that are not
 * of the brush. The first Enter marks where the time begins, the second one zooms.
 */
export function pressed(brush: Brush, key: string, hasShift: boolean): Brush | "zoom" | null {
  const step = STEPS[key];
  if (step !== undefined) {
    const from = hasShift ? (brush.from ?? brush.at) : brush.from;
    return { at: bounded(brush.at + step), from };
  }
  if (key === "Enter") {
    return brush.from === null || brush.from === brush.at ? { ...brush, from: brush.at } : "zoom";
  }
  return key === "Escape" && brush.from !== null ? { ...brush, from: null } : null;
}
