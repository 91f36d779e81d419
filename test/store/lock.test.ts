import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Locked } from '../../src/core/errors.ts';
import { removeLock, withLock } from '../../src/store/lock.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-lock-'));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/** Another process that holds the lock until it is killed. */
async function startHolder() {
  const module = join(import.meta.dirname, '../../src/store/lock.ts');
  const script = `import { withLock } from ${JSON.stringify(module)};
    await withLock(${JSON.stringify(folder)}, async () => { console.log('held'); await new Promise((done) => setTimeout(done, 60_000)); });`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  return holder;
}

describe('the lock', () => {
  it('lets one at a time work', async () => {
    let working = 0;
    let most = 0;
    const work = async () => {
      working += 1;
      most = Math.max(most, working);
      await new Promise((resolve) => setImmediate(resolve));
      working -= 1;
    };
    await Promise.all(Array.from({ length: 5 }, () => withLock(folder, work)));
    expect(most).toBe(1);
  });

  it('names the process that holds it, and is free at once when that one is killed', async () => {
    const holder = await startHolder();
    try {
      const refused = await withLock(folder, async () => 'never', 0).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(Locked);
      expect(String(refused)).toContain(`pid ${holder.pid}`);
    } finally {
      holder.kill('SIGKILL');
      await once(holder, 'exit');
    }
    expect(await withLock(folder, async () => 'mine', 0)).toBe('mine');
  });

  it('is free again after work that failed', async () => {
    await expect(withLock(folder, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await withLock(folder, async () => 'mine', 0)).toBe('mine');
  });

  it('that was removed by its holder is made anew by the next one', async () => {
    await withLock(folder, () => removeLock(folder));
    expect(await withLock(folder, async () => 'mine', 0)).toBe('mine');
  });
});
