import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** How often properties were executed. */
export interface Tally {
  readonly executions: number;
  readonly properties: number;
}

/** Notes in the folder of a run that one more property was executed so often. */
export function writeTally(folder: string, executions: number): void {
  writeFileSync(join(folder, `${randomUUID()}.json`), JSON.stringify({ executions, properties: 1 } satisfies Tally));
}

/** The sum of what was noted in a run. */
export function readTallies(folder: string): Tally {
  const tallies = readdirSync(folder).map((file): Tally => JSON.parse(readFileSync(join(folder, file), 'utf8')));
  return {
    executions: tallies.reduce((sum, { executions }) => sum + executions, 0),
    properties: tallies.reduce((sum, { properties }) => sum + properties, 0),
  };
}

/** A run in one line. */
export function describeTally({ executions, properties }: Tally, seed: string): string {
  return `fuzz: ${executions} executions, seed ${seed}, ${properties} properties`;
}
