import { randomUUID } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of a run's verdicts. */
    hostileVerdicts: string;
  }
}

/** The faults of a host after each reply, by the reply's name: none where it was refused. */
export type Verdicts = ReadonlyMap<string, readonly string[]>;

/** Keeps verdicts for the report at the end of the run. */
export async function recordVerdicts(folder: string, verdicts: Verdicts): Promise<void> {
  await writeFile(join(folder, `${randomUUID()}.json`), JSON.stringify([...verdicts]));
}

/** Everything that was recorded in a run; a reply that was sent more than once is there as often. */
export async function readVerdicts(folder: string): Promise<[name: string, complaints: readonly string[]][]> {
  const files = await readdir(folder);
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  return texts.flatMap((text) => JSON.parse(text));
}

/** How many replies were sent, each counted once, and how many of them were refused each time. */
export function countVerdicts(verdicts: Iterable<readonly [string, readonly string[]]>): {
  tried: number;
  refused: number;
} {
  const recorded = [...verdicts];
  const tried = new Set(recorded.map(([name]) => name));
  const taken = new Set(recorded.filter(([, complaints]) => complaints.length > 0).map(([name]) => name));
  return { tried: tried.size, refused: tried.size - taken.size };
}
