/** Colours that differ also for eyes that see red and green alike (after Okabe and Ito). */
const LIGHT = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800"];
const DARK = ["#4aa8e0", "#f0b840", "#2fc79a", "#e39bc4", "#8fd0f5", "#f58549", "#e0d040"];
const OTHER = { light: "#8a94a0", dark: "#75818d" };

export function seriesColour(index: number, name: string, isDark: boolean): string {
  if (name === "others") {
    return isDark ? OTHER.dark : OTHER.light;
  }
  const colours = isDark ? DARK : LIGHT;
  return colours[index % colours.length] ?? OTHER.light;
}

/** A colour of the theme, for canvases, which know no variables. */
export const themeColour = (name: string) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
