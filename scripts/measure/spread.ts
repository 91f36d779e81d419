/**
 * The spread of measurements: the value that half of them, 95 and 99 of a hundred, and all of them
 * do not exceed.
 */
export interface Spread {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** The spread of some measurements, at least one. */
export function spreadOf(values: readonly number[]): Spread {
  const at = (share: number) => quantileOf(values, share);
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

/** The value that a share of some values, at least one, do not exceed: by nearest rank. */
export function quantileOf(values: readonly number[], share: number): number {
  if (values.length === 0) throw new Error('nothing was measured');
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
