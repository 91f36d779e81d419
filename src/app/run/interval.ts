/** `seconds`, a fifth more or less, so that hosts that started together do not go on together. */
export function spread(seconds: number): number {
  return seconds * (0.8 + 0.4 * Math.random());
}
