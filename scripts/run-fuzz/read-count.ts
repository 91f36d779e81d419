/** The largest number that an option takes; seeds are below it. */
export const most = 2 ** 31 - 1;

/** A number from 0 to {@link most}; null for any other text. */
export function readCount(text: string): number | null {
  return /^(0|[1-9][0-9]{0,9})$/.test(text) && Number(text) <= most ? Number(text) : null;
}
