import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from '../lab/run.ts';

const demo = join(import.meta.dirname, '../../scripts/demo.ts');

describe('scripts/demo', () => {
  it('shows every pair and the LAN answering, each status, and leaves', async () => {
    const { stdout } = await run([process.execPath, demo], { timeoutMs: 55_000 });
    expect(stdout.match(/→ .*: answered/g)).toHaveLength(8);
    expect(stdout).not.toContain('lost');
    for (const host of ['connector', 'origin', 'laptop']) expect(stdout).toContain(`cpn status on ${host}`);
    expect(stdout.match(/removed everything cpn created for it/g)).toHaveLength(3);
    expect(stdout).toContain('Every ping was answered.');
  });

  it('names in one line what it needs where it cannot run', async () => {
    const hideWg = 'mount --bind /dev/null "$(command -v wg)" && exec "$@"';
    const argv = ['unshare', '--mount', 'sh', '-c', hideWg, 'sh', process.execPath, demo];
    const { exitCode, stderr } = await run(argv, { allowFailure: true });
    expect([exitCode, stderr]).toEqual([1, 'scripts/demo needs the commands wg: run scripts/setup\n']);
  });
});
