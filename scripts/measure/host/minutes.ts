/**
 * For how many minutes a subject of long duration is measured: BENCH_MINUTES, where that is set.
 */
export function minutesOf(usual: number): number {
  const text = process.env.BENCH_MINUTES;
  const minutes = text === undefined ? usual : Number(text);
  if (!(minutes > 0)) throw new Error(`BENCH_MINUTES=${text} is no number of minutes; give one above 0`);
  return minutes;
}
