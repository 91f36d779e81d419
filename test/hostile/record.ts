import { randomUUID } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of what came of the lies of a run. */
    hostileVerdicts: string;
  }
}

/** What was wrong with how a host met each lie, by the lie's name: nothing where it was refused. */
export type Verdicts = ReadonlyMap<string, readonly string[]>;

/** Keeps verdicts for the report at the end of the run. */
export async function recordVerdicts(folder: string, verdicts: Verdicts): Promise<void> {
  await writeFile(join(folder, `${randomUUID()}.json`), JSON.stringify([...verdicts]));
}

/** Everything that was recorded in a run; a lie that was told more than once is there as often. */
export async function readVerdicts(folder: string): Promise<[name: string, complaints: readonly string[]][]> {
  const files = await readdir(folder);
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  return texts.flatMap((text) => JSON.parse(text));
}

/** How many lies were told, each counted once, and how many of them were refused whenever they were told. */
export function countVerdicts(verdicts: Iterable<readonly [string, readonly string[]]>): {
  tried: number;
  refused: number;
} {
  const told = [...verdicts];
  const tried = new Set(told.map(([name]) => name));
  const taken = new Set(told.filter(([, complaints]) => complaints.length > 0).map(([name]) => name));
  return { tried: tried.size, refused: tried.size - taken.size };
}
