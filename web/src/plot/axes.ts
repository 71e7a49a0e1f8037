import type uPlot from "uplot";
import type { Zone } from "../text/times";
import { clock, dateTime, NS_PER_S } from "../text/times";
import { themeColour } from "./colours";

/** As the page has it: larger on a display on the wall. */
export const remPx = () => parseFloat(getComputedStyle(document.documentElement).fontSize);
const font = () => `${Math.round(0.86 * remPx())}px system-ui, sans-serif`;
const DAY_S = 86_400;

/** Times along the axis, in the zone that the page shows. */
export function timeAxis(zone: Zone): uPlot.Axis {
  return {
    ...look(),
    space: 6.5 * remPx(),
    size: 2 * remPx(),
    values: (_plot, splits, _axis, _space, step) =>
      splits.map((seconds) => timeText(seconds * NS_PER_S, step, zone)),
  };
}

function timeText(ns: number, stepS: number, zone: Zone): string {
  if (stepS >= DAY_S) {
    return dateTime(ns, zone, 0).slice(0, 10);
  }
  if (stepS < 1) {
    return clock(ns, zone, 3);
  }
  return stepS < 60 ? clock(ns, zone) : clock(ns, zone).slice(0, 5);
}

/** Steps of a byte axis, so that its labels are whole KiB and MiB. */
export const BINARY_STEPS = Array.from({ length: 60 }, (_, power) => 2 ** power);

/** Steps of a time axis that has no fractions of seconds. */
export const SECOND_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200];

/** Steps of a count: 1, 2, 5, 10 and so on. */
export const WHOLE_STEPS = Array.from({ length: 36 }, (_, at) =>
  [1, 2, 5].map((digit) => digit * 10 ** Math.floor(at / 3))[at % 3] ?? 1,
);

export function valueAxis(text: (value: number) => string): uPlot.Axis {
  return {
    ...look(),
    size: 5.3 * remPx(),
    space: 28,
    values: (_plot, splits) => splits.map((value) => text(value)),
  };
}

function look(): uPlot.Axis {
  const line = { stroke: themeColour("line"), width: 1 };
  return { stroke: themeColour("muted"), font: font(), grid: line, ticks: { ...line, size: 4 } };
}

/** Lets uPlot split the axis at hours and days of the zone. */
export const zonedDate = (zone: Zone) => (seconds: number) => {
  const at = new Date(seconds * 1000);
  if (zone === "local") {
    return at;
  }
  return new Date(at.getTime() + at.getTimezoneOffset() * 60_000);
};
