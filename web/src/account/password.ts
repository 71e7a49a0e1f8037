/** As the service counts them. */
export const LENGTH_MIN = 12;

/** Characters of a password in the form that the service compares. */
export function lengthOf(password: string): number {
  return [...password.normalize("NFC")].length;
}
