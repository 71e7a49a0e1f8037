import type { Zone } from "../text/times";

export type Theme = "system" | "light" | "dark";
const THEMES: Theme[] = ["system", "light", "dark"];

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Private windows may forbid it. The choice then lasts as long as the page.
  }
}

/** How this browser shows the page. */
class Preferences {
  theme = $state<Theme>("system");
  zone = $state<Zone>("utc");
  isDark = $state(false);
  columns = $state.raw<string[]>([]);

  readonly #systemDark = matchMedia("(prefers-color-scheme: dark)");

  constructor() {
    this.#systemDark.addEventListener("change", () => this.#applyTheme());
    // Another tab has changed something.
    addEventListener("storage", () => this.#read());
    this.#read();
  }

  #read(): void {
    this.theme = THEMES.find((theme) => theme === read("wirespool.theme")) ?? "system";
    this.zone = read("wirespool.zone") === "local" ? "local" : "utc";
    this.columns = read("wirespool.columns")?.split(",").filter(Boolean) ?? [];
    this.#applyTheme();
  }

  /** The document first: plots read its colours when `isDark` changes. */
  #applyTheme(): void {
    const isDark = this.theme === "dark" || (this.theme === "system" && this.#systemDark.matches);
    document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
    this.isDark = isDark;
  }

  nextTheme(): void {
    this.theme = THEMES[(THEMES.indexOf(this.theme) + 1) % THEMES.length] ?? "system";
    this.#applyTheme();
    write("wirespool.theme", this.theme);
  }

  switchZone(): void {
    this.zone = this.zone === "utc" ? "local" : "utc";
    write("wirespool.zone", this.zone);
  }

  chooseColumns(columns: string[]): void {
    this.columns = columns;
    write("wirespool.columns", columns.join(","));
  }
}

export const preferences = new Preferences();
