import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { run } from '../lab/run.ts';

const dist = join(import.meta.dirname, '../../dist');
const printed = `${packageJson.version}\n`;
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-build-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the built program', () => {
  it('prints its version, from each entry point', async () => {
    for (const argv of [[], [process.execPath]]) {
      expect((await run([...argv, join(dist, 'cpn.js'), '--version'])).stdout).toBe(printed);
    }
    const main = ['-e', 'require(process.argv[1]).main()', join(dist, 'main.cjs')];
    expect((await run([process.execPath, ...main, '--version'])).stdout).toBe(printed);
  });

  it('loads nothing else for that', async () => {
    const alone = join(folder, 'start.cjs');
    copyFileSync(join(dist, 'start.cjs'), alone);
    expect((await run([process.execPath, alone, '--version'])).stdout).toBe(printed);
  });
});
