/** What is drawn on a canvas, as SVG: the same calls, written down instead of painted. */

const shown = (value: number) => String(Math.round(value * 100) / 100);
const escaped = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

/** A path that paints as usual, and knows its own steps. */
class RecordedPath extends Path2D {
  steps = "";

  override moveTo(x: number, y: number): void {
    super.moveTo(x, y);
    this.steps += `M${shown(x)} ${shown(y)}`;
  }

  override lineTo(x: number, y: number): void {
    super.lineTo(x, y);
    this.steps += `L${shown(x)} ${shown(y)}`;
  }

  override closePath(): void {
    super.closePath();
    this.steps += "Z";
  }

  override rect(x: number, y: number, width: number, height: number): void {
    super.rect(x, y, width, height);
    this.steps += box(x, y, width, height);
  }

  override arc(x: number, y: number, radius: number, from: number, to: number): void {
    super.arc(x, y, radius, from, to);
    this.steps += disc(x, y, radius);
  }

  override bezierCurveTo(...[a, b, c, d, x, y]: Parameters<Path2D["bezierCurveTo"]>): void {
    super.bezierCurveTo(a, b, c, d, x, y);
    this.steps += `C${[a, b, c, d, x, y].map(shown).join(" ")}`;
  }
}

const box = (x: number, y: number, width: number, height: number) =>
  `M${shown(x)} ${shown(y)}h${shown(width)}v${shown(height)}h${shown(-width)}Z`;
/** Plots draw whole ones alone. */
const disc = (x: number, y: number, radius: number) => {
  const half = (dx: number) => `a${shown(radius)} ${shown(radius)} 0 1 0 ${shown(dx)} 0`;
  return `M${shown(x - radius)} ${shown(y)}${half(2 * radius)}${half(-2 * radius)}Z`;
};

const ANCHORS: Record<string, string> = {
  left: "start",
  start: "start",
  center: "middle",
  right: "end",
  end: "end",
};
const BASELINES: Record<string, string> = { top: "0.8em", middle: "0.32em", bottom: "-0.2em" };

/** None has the name of a method: a plot that asks for that one would get it. */
interface Style {
  fillStyle: string;
  strokeStyle: string;
  lineWidth: number;
  globalAlpha: number;
  font: string;
  textAlign: string;
  textBaseline: string;
  lineJoin: string;
  lineCap: string;
  dash: number[];
  moves: string;
  clippedBy: string;
}

/** A context of a canvas that writes SVG, as far as plots use it. */
export class Recording {
  private readonly parts: string[] = [];
  private readonly clips: string[] = [];
  private readonly saved: Style[] = [];
  private path = "";
  private style: Style = {
    fillStyle: "#000",
    strokeStyle: "#000",
    lineWidth: 1,
    globalAlpha: 1,
    font: "10px sans-serif",
    textAlign: "start",
    textBaseline: "alphabetic",
    lineJoin: "miter",
    lineCap: "butt",
    dash: [],
    moves: "",
    clippedBy: "",
  };

  /** What plots take for a context. */
  get context(): CanvasRenderingContext2D {
    return new Proxy(this, {
      get: (recording, name) => {
        if (name in recording.style) {
          return recording.style[name as keyof Style];
        }
        const value: unknown = Reflect.get(recording, name);
        return typeof value === "function" ? (value.bind(recording) as unknown) : value;
      },
      set: (recording, name, value) => {
        recording.style = { ...recording.style, [name]: value as string };
        return true;
      },
    }) as unknown as CanvasRenderingContext2D;
  }

  save(): void {
    this.saved.push(this.style);
  }

  restore(): void {
    this.style = this.saved.pop() ?? this.style;
  }

  translate(x: number, y: number): void {
    this.change(`translate(${shown(x)} ${shown(y)})`);
  }

  rotate(radians: number): void {
    this.change(`rotate(${shown((radians * 180) / Math.PI)})`);
  }

  private change(step: string): void {
    this.style = { ...this.style, moves: `${this.style.moves} ${step}`.trim() };
  }

  setLineDash(dash: number[]): void {
    this.style = { ...this.style, dash };
  }

  clearRect(): void {
    this.parts.length = 0;
  }

  beginPath(): void {
    this.path = "";
  }

  moveTo(x: number, y: number): void {
    this.path += `M${shown(x)} ${shown(y)}`;
  }

  lineTo(x: number, y: number): void {
    this.path += `L${shown(x)} ${shown(y)}`;
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.path += box(x, y, width, height);
  }

  arc(x: number, y: number, radius: number): void {
    this.path += disc(x, y, radius);
  }

  closePath(): void {
    this.path += "Z";
  }

  private stepsOf(path: unknown): string {
    return path instanceof RecordedPath ? path.steps : this.path;
  }

  clip(path?: unknown): void {
    const steps = this.stepsOf(path);
    this.clips.push(`<clipPath id="c${this.clips.length}"><path d="${steps}"/></clipPath>`);
    this.style = { ...this.style, clippedBy: `c${this.clips.length - 1}` };
  }

  private around(element: string): void {
    const { moves, clippedBy, globalAlpha } = this.style;
    const moved = moves === "" ? "" : ` transform="${moves}"`;
    const clipped = clippedBy === "" ? "" : ` clip-path="url(#${clippedBy})"`;
    const faded = globalAlpha === 1 ? "" : ` opacity="${shown(globalAlpha)}"`;
    this.parts.push(moved + clipped + faded === "" ? element
      : `<g${moved}${clipped}${faded}>${element}</g>`);
  }

  fill(path?: unknown): void {
    const steps = this.stepsOf(path);
    if (steps !== "") {
      this.around(`<path d="${steps}" fill="${escaped(this.style.fillStyle)}"/>`);
    }
  }

  stroke(path?: unknown): void {
    const steps = this.stepsOf(path);
    const { strokeStyle, lineWidth, lineJoin, lineCap, dash } = this.style;
    if (steps !== "" && lineWidth > 0) {
      const dashes = dash.length > 0 ? ` stroke-dasharray="${dash.map(shown).join(" ")}"` : "";
      this.around(
        `<path d="${steps}" fill="none" stroke="${escaped(strokeStyle)}"` +
          ` stroke-width="${shown(lineWidth)}" stroke-linejoin="${lineJoin}"` +
          ` stroke-linecap="${lineCap}"${dashes}/>`,
      );
    }
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    const steps = box(x, y, width, height);
    this.around(`<path d="${steps}" fill="${escaped(this.style.fillStyle)}"/>`);
  }

  fillText(text: string, x: number, y: number): void {
    const { fillStyle, font, textAlign, textBaseline } = this.style;
    this.around(
      `<text x="${shown(x)}" y="${shown(y)}" dy="${BASELINES[textBaseline] ?? 0}"` +
        ` text-anchor="${ANCHORS[textAlign] ?? "start"}" fill="${escaped(fillStyle)}"` +
        ` style="font:${escaped(font)}">${escaped(text)}</text>`,
    );
  }

  /** The picture, of a size in the pixels of the canvas. */
  toSvg(width: number, height: number, background: string): string {
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"` +
      ` viewBox="0 0 ${width} ${height}"><defs>${this.clips.join("")}</defs>` +
      `<rect width="100%" height="100%" fill="${escaped(background)}"/>` +
      `${this.parts.join("")}</svg>\n`
    );
  }
}

/** Has what `draw` makes, and draws soon after, use recordings and paths that know their steps. */
export async function recorded<T extends { destroy: () => void }>(
  draw: () => T,
): Promise<Recording> {
  const recording = new Recording();
  const prototype = HTMLCanvasElement.prototype;
  const before = Object.getOwnPropertyDescriptor(prototype, "getContext");
  const path = globalThis.Path2D;
  globalThis.Path2D = RecordedPath;
  try {
    Object.defineProperty(prototype, "getContext", {
      configurable: true,
      value: () => recording.context,
    });
    let made: T;
    try {
      made = draw();
    } finally {
      Object.defineProperty(prototype, "getContext", before ?? {});
    }
    // Plots paint in a task of their own.
    await new Promise((resolve) => setTimeout(resolve));
    made.destroy();
  } finally {
    globalThis.Path2D = path;
  }
  return recording;
}
