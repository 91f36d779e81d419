/** One of several variants of the same task. */
export interface Way {
  readonly measured: () => Promise<unknown>;
  /** What makes it as it was before. */
  readonly after?: () => Promise<unknown>;
  /** Where it takes so long that it is measured less often than the others. */
  readonly rounds?: number;
}

/** Milliseconds that each variant took, in turn, so that all run under the same load. */
export async function inTurn<Name extends string>(
  rounds: number,
  ways: Readonly<Record<Name, Way>>,
): Promise<Record<Name, number[]>> {
  const times = Object.fromEntries(Object.keys(ways).map((name) => [name, []])) as unknown as Record<Name, number[]>;
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, way] of Object.entries(ways) as [Name, Way][]) {
      if (round >= (way.rounds ?? rounds)) continue;
      const begun = performance.now();
      await way.measured();
      times[name].push(performance.now() - begun);
      await way.after?.();
    }
  }
  return times;
}
