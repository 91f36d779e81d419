/**
 * Splits text that arrives in pieces. Calls `onLine` with each line, without its newline. For a
 * line of more than `limit` characters, calls it with null and skips the rest.
 */
export function splitLines(limit: number, onLine: (line: string | null) => void): (piece: string) => void {
  let kept = '';
  let skipping = false;
  return (piece) => {
    const [first = '', ...others] = piece.split('\n');
    kept += first;
    for (const next of others) {
      if (!skipping) onLine(kept.length > limit ? null : kept);
      skipping = false;
      kept = next;
    }
    if (!skipping && kept.length > limit) {
      skipping = true;
      onLine(null);
    }
    if (skipping) kept = '';
  };
}
