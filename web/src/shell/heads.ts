/** A column of a table: its title, and what is special about it. */
export interface Head {
  title: string;
  isNumber?: boolean;
  sort?: "ascending" | "descending" | undefined;
  /** Its title is only read aloud. */
  isHidden?: boolean;
  /** It has buttons or pictures, which no file takes. */
  isExported?: boolean;
}

export const text = (title: string): Head => ({ title });
export const number = (title: string, sort?: Head["sort"]): Head => ({
  title,
  isNumber: true,
  sort,
});
/** A column of buttons or pictures. */
export const shownOnly = (title: string, isHidden = false): Head => ({
  title,
  isHidden,
  isExported: false,
});
