/**
 * Runs around the tests of this folder: gives them a folder for their verdicts, and prints the counts in one line.
 *
 * @module
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { countVerdicts, readVerdicts } from './record.ts';

/** Vitest's global setup; returns what runs after the tests. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'cpn-hostile-'));
  project.provide('hostileVerdicts', folder);
  return async () => {
    const verdicts = await readVerdicts(folder);
    await rm(folder, { recursive: true });
    if (verdicts.length === 0) return;
    const { tried, refused } = countVerdicts(verdicts);
    process.stdout.write(`\nmalicious replies: ${tried} tried, ${refused} refused\n`);
  };
}
