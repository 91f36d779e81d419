/**
 * Runs around the tests of this folder: gives them a place for their rows, and prints the table when they are done. Where every
 * test of the folder ran, a fault without a row fails the run.
 *
 * @module
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import type {} from './record.ts';
import { readRows } from './row.ts';
import { findMissing, renderTable } from './table.ts';

/** Vitest's global setup; returns what runs after the tests. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'cpn-faults-'));
  project.provide('faultRows', folder);
  return async () => {
    const rows = await readRows(folder);
    await rm(folder, { recursive: true });
    if (rows.length > 0) process.stdout.write(`\n${renderTable(rows)}\n`);
    const missing = (await ranEverything(project)) ? findMissing(rows) : [];
    if (missing.length === 0) return;
    process.stdout.write(`\nneither a row nor a reason for having none:\n  ${missing.join('\n  ')}\n`);
    process.exitCode = 1;
  };
}

async function ranEverything(project: TestProject): Promise<boolean> {
  const { vitest } = project;
  const { testFiles } = await project.globTestFiles();
  const ran = new Set(vitest.state.getFilepaths());
  return vitest.getGlobalTestNamePattern() === undefined && testFiles.every((file) => ran.has(file));
}
