/**
 * A reader of text that comes in pieces, which calls `onLine` with each line, without its end. It keeps no more than `most`
 * characters of a line that does not end yet: for a longer one it calls `onLine` with null, once, and skips the rest.
 */
export function splitLines(most: number, onLine: (line: string | null) => void): (piece: string) => void {
  let kept = '';
  let skipping = false;
  return (piece) => {
    const [first = '', ...others] = piece.split('\n');
    kept += first;
    for (const next of others) {
      if (!skipping) onLine(kept.length > most ? null : kept);
      skipping = false;
      kept = next;
    }
    if (!skipping && kept.length > most) {
      skipping = true;
      onLine(null);
    }
    if (skipping) kept = '';
  };
}
