/** The settings of a run of the properties: the same in all of its files. */
export interface Settings {
  /** From which each property makes a seed of its own; the same seed gives the same values in the same order. */
  readonly seed: number;
  /** Executions of each property; null for each property's own number. */
  readonly runs: number | null;
  /** Milliseconds since the epoch at which a long run ends; null for a run that takes as long as it takes. */
  readonly until: number | null;
  /** The folder of the run's tallies. */
  readonly tallies: string;
}

/** The variables by which scripts/fuzz gives a run its settings. */
export const variables = {
  seed: 'CPN_FUZZ_SEED',
  runs: 'CPN_FUZZ_RUNS',
  until: 'CPN_FUZZ_UNTIL',
  total: 'CPN_FUZZ_TOTAL',
};

/** The default seed: a test that fails once must fail the next time. */
const usualSeed = 20_261_121;

/** Of each property, how often it is executed in a long run for each time that it would be in a short one. */
const longer = 6;

/** Reads the settings of a run from its environment. */
export function readSettings(environment: NodeJS.ProcessEnv, tallies: string): Settings {
  const read = (name: string) => (environment[name] === undefined ? null : Number(environment[name]));
  return {
    seed: read(variables.seed) ?? usualSeed,
    runs: read(variables.runs),
    until: read(variables.until),
    tallies,
  };
}

/** How often a property is executed that runs `usual` times in a short run. */
export function countRuns({ runs, until }: Settings, usual: number): number {
  return runs ?? (until === null ? usual : usual * longer);
}
