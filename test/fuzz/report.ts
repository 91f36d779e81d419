/**
 * Runs around the tests of this folder: gives them their settings, and prints in one line how often properties were executed.
 *
 * @module
 */
import { appendFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import type {} from './fuzz.ts';
import { readSettings, variables } from './settings.ts';
import { describeTally, readTallies } from './tally.ts';

/** Vitest's global setup; returns what runs after the tests. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'cpn-fuzz-'));
  const settings = readSettings(process.env, folder);
  project.provide('fuzz', settings);
  return async () => {
    const tally = readTallies(folder);
    await rm(folder, { recursive: true });
    if (tally.properties > 0) process.stdout.write(`\n${describeTally(tally, String(settings.seed))}\n`);
    const total = process.env[variables.total];
    if (total !== undefined) appendFileSync(total, `${JSON.stringify(tally)}\n`);
  };
}
