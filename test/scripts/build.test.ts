import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { run } from '../lab/run.ts';

const dist = join(import.meta.dirname, '../../dist');

describe('the built program', () => {
  it('tells its version, and loads nothing else for that', async () => {
    expect((await run([join(dist, 'cpn.js'), '--version'])).stdout).toBe(`${packageJson.version}\n`);
    const main = await readFile(join(dist, 'main.js'), 'utf8');
    const eager = [...main.matchAll(/(?:^|;)(?:import|export)[^;"]*"\.\/([^"]+)"/g)].map(([, part = '']) => part);
    const sizes = await Promise.all(eager.map(async (part) => (await readFile(join(dist, part))).length));
    expect(main).not.toContain('yargs');
    expect(sizes.reduce((sum, size) => sum + size, main.length)).toBeLessThan(20_000);
  });
});
