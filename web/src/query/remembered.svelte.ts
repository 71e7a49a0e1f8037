const HISTORY = 50;

export interface SavedQuery {
  name: string;
  query: string;
}

function read<T>(key: string): T[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(found) ? (found as T[]) : [];
  } catch {
    return [];
  }
}

function write(key: string, list: unknown[]): void {
  try {
    localStorage.setItem(key, JSON.stringify(list));
  } catch {
    // Private windows may forbid it. The lists then last as long as the page.
  }
}

/** Queries of this browser: those that were asked, the newest first, and those with a name. */
class Remembered {
  history = $state.raw<string[]>(read<string>("wirespool.history"));
  saved = $state.raw<SavedQuery[]>(read<SavedQuery>("wirespool.saved"));

  constructor() {
    // Of another tab: what it keeps is kept here, too, and not overwritten by older lists.
    addEventListener("storage", () => {
      this.history = read<string>("wirespool.history");
      this.saved = read<SavedQuery>("wirespool.saved");
    });
  }

  note(query: string): void {
    const text = query.trim();
    if (text !== "") {
      this.history = [text, ...this.history.filter((one) => one !== text)].slice(0, HISTORY);
      write("wirespool.history", this.history);
    }
  }

  save(name: string, query: string): void {
    this.saved = [...this.saved.filter((one) => one.name !== name), { name, query }];
    write("wirespool.saved", this.saved);
  }

  forget(name: string): void {
    this.saved = this.saved.filter((one) => one.name !== name);
    write("wirespool.saved", this.saved);
  }

  clearHistory(): void {
    this.history = [];
    write("wirespool.history", []);
  }
}

export const remembered = new Remembered();
