/** For how many minutes a subject of long duration is measured: BENCH_MINUTES, where that is set. */
export function minutesOf(usual: number): number {
  const told = process.env.BENCH_MINUTES;
  const minutes = told === undefined ? usual : Number(told);
  if (!(minutes > 0)) throw new Error(`BENCH_MINUTES=${told} is no number of minutes; give one above 0`);
  return minutes;
}
