import { describe, expect, it } from "vitest";
import { MIDDLE, pressed, type Brush } from "./brush";

function after(...keys: string[]) {
  return keys.reduce<Brush | "zoom" | null>((brush, key) => {
    const name = key.replace("Shift+", "");
    return brush === null || brush === "zoom" ? brush : pressed(brush, name, name !== key);
  }, MIDDLE);
}

describe("the brush of keys", () => {
  it("moves, and stops at the ends", () => {
    expect(after("ArrowRight", "ArrowRight", "PageDown")).toEqual({ at: 0.42, from: null });
    expect(after("End", "ArrowRight")).toEqual({ at: 1, from: null });
  });

  it("marks with Enter, extends, and zooms with Enter", () => {
    expect(after("Enter", "PageUp")).toEqual({ at: 0.6, from: 0.5 });
    expect(after("Enter", "PageUp", "Enter")).toBe("zoom");
    expect(after("Enter", "Enter")).toEqual({ at: 0.5, from: 0.5 });
  });

  it("extends with Shift, and Escape drops the choice", () => {
    expect(after("Shift+ArrowLeft")).toEqual({ at: 0.49, from: 0.5 });
    expect(after("Shift+ArrowLeft", "Escape")).toEqual({ at: 0.49, from: null });
  });

  it("leaves other keys alone", () => {
    expect(pressed(MIDDLE, "j", false)).toBeNull();
    expect(pressed(MIDDLE, "Escape", false)).toBeNull();
  });
});
