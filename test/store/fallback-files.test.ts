import { beforeEach, describe, expect, it } from 'vitest';
import { DiskFailed, Locked } from '../../src/core/errors/index.ts';
import { DiskFailures, FallbackFiles } from '../../src/store/fallback-files.ts';
import { fallbackStore } from '../../src/store/fallback-store.ts';
import type { HostStore } from '../../src/store/store.ts';

const failure = new DiskFailed('write', '/x', Object.assign(new Error('ENOSPC'), { code: 'ENOSPC', errno: -28 }));
const locked = new Locked('/run/cpn/lock', '7', 'cpn');
const link = 'cpn0';

/** A disk of one text, and what of it fails. */
class Disk {
  text: string | null = 'old';
  readonly fails = { read: false, write: false };
  lock: Error | null = null;
  writes = 0;
  clock = 0;
  readonly events: string[] = [];
  readonly failures = new DiskFailures((event) => void this.events.push(event));
  readonly files = new FallbackFiles<string>(
    {
      kind: 'state',
      read: async () => {
        if (this.fails.read) throw failure;
        return this.text;
      },
      write: async (_, text) => {
        this.writes += 1;
        if (this.fails.write) throw failure;
        this.text = text;
      },
      format: (text) => text,
    },
    {
      failures: this.failures,
      now: () => this.clock,
      alone: async (work) => {
        if (this.lock !== null) throw this.lock;
        await work();
      },
    },
  );
}

let disk: Disk;
beforeEach(async () => {
  disk = new Disk();
  expect(await disk.files.read(link)).toBe('old');
  disk.fails.write = true;
  await disk.files.write(link, 'new');
  disk.fails.write = false;
});

describe('what could not be written', () => {
  it('is tried again after five seconds, and no sooner', async () => {
    disk.clock = 4_999;
    expect([await disk.files.read(link), disk.text, disk.files.isUnsaved(link)]).toEqual(['new', 'old', true]);
    disk.clock = 5_000;
    expect([await disk.files.read(link), disk.text, disk.files.isUnsaved(link)]).toEqual(['new', 'new', false]);
    expect(disk.events).toEqual(['failing', 'recovered']);
  });

  it.each([
    ['the disk cannot hold the lock', failure],
    ['another process holds the lock', locked],
  ])('stays in memory while %s, and is tried again five seconds later', async (_, error) => {
    disk.lock = error;
    disk.clock = 5_000;
    expect(await disk.files.read(link)).toBe('new');
    disk.lock = null;
    disk.clock = 9_999;
    expect([await disk.files.read(link), disk.text]).toEqual(['new', 'old']);
    disk.clock = 10_000;
    expect([await disk.files.read(link), disk.text]).toEqual(['new', 'new']);
  });

  it('fails with any other error of the lock', async () => {
    disk.lock = new TypeError('a bug');
    disk.clock = 5_000;
    await expect(disk.files.read(link)).rejects.toThrow('a bug');
  });

  it('is tried once each five seconds while the disk fails, and reported once', async () => {
    disk.fails.write = true;
    for (disk.clock = 0; disk.clock <= 20_000; disk.clock += 1_000) await disk.files.read(link);
    expect([disk.writes, disk.events]).toEqual([5, ['failing']]);
  });

  it('is replaced by a newer write, which waits for its turn too', async () => {
    await disk.files.write(link, 'newest');
    expect([await disk.files.read(link), disk.text, disk.writes]).toEqual(['newest', 'old', 1]);
    disk.clock = 5_000;
    expect([await disk.files.read(link), disk.text]).toEqual(['newest', 'newest']);
  });

  it('gives way to what another process wrote, or removed', async () => {
    disk.text = 'of another process';
    expect([await disk.files.read(link), disk.files.isUnsaved(link)]).toEqual(['of another process', false]);
    expect(disk.events).toEqual(['failing', 'recovered']);
    const other = new Disk();
    other.fails.write = true;
    await other.files.read(link);
    await other.files.write(link, 'new');
    other.text = null;
    expect([await other.files.read(link), other.files.links()]).toEqual([null, []]);
  });

  it('is there while the disk cannot be read either, and knows what was there before', async () => {
    const other = new Disk();
    await other.files.read(link);
    other.fails.read = true;
    other.fails.write = true;
    await other.files.write(link, 'new');
    expect(await other.files.read(link)).toBe('new');
    other.fails.read = false;
    other.fails.write = false;
    expect([await other.files.read(link), other.files.isUnsaved(link)]).toEqual(['new', true]);
    other.clock = 5_000;
    expect([await other.files.read(link), other.text, other.events]).toEqual(['new', 'new', ['failing', 'recovered']]);
  });

  it('is forgotten with the network, and so are its failures', async () => {
    disk.fails.read = true;
    expect(await disk.files.read(link)).toBe('new');
    disk.files.forget(link);
    expect([disk.files.links(), disk.files.isUnsaved(link), disk.events]).toEqual([
      [],
      false,
      ['failing', 'recovered'],
    ]);
    await expect(disk.files.read(link)).rejects.toBe(failure);
  });
});

describe('a lock that the disk fails to hold', () => {
  type Take = 'lock' | 'change' | 'lockDaemon';
  const takes: readonly Take[] = ['lock', 'change', 'lockDaemon'];
  /** A store whose lock fails before the work, after it, or is held. */
  const start = (fail: (work: () => Promise<unknown>) => Promise<unknown>) => {
    const events: string[] = [];
    const given: unknown[] = [];
    const take = (work: () => Promise<unknown>, ...rest: unknown[]) => {
      given.push(...rest);
      return fail(work);
    };
    const store = { lock: take, change: take, lockDaemon: take } as unknown as HostStore;
    return { store: fallbackStore(store, (event) => void events.push(event)), events, given };
  };

  it.each(takes)('before the work does without it: %s', async (which) => {
    const { store, events } = start(() => Promise.reject(failure));
    expect([await store[which](async () => 'done'), events]).toEqual(['done', ['failing']]);
  });

  it.each(takes)('after the work repeats nothing: %s', async (which) => {
    const { store, events } = start(async (work) => {
      await work();
      throw failure;
    });
    let times = 0;
    const done = await store[which](async () => {
      times += 1;
      return times;
    });
    expect([done, times, events]).toEqual([1, 1, ['failing']]);
  });

  it.each(takes)('is refused where another process holds it: %s', async (which) => {
    const { store, events } = start(() => Promise.reject(locked));
    await expect(store[which](async () => 'never')).rejects.toBe(locked);
    expect(events).toEqual([]);
  });

  it.each(takes)('is over once it is held again: %s', async (which) => {
    let isBroken = true;
    const { store, events } = start((work) => (isBroken ? Promise.reject(failure) : work()));
    await store[which](async () => {});
    isBroken = false;
    await store[which](async () => expect(events).toEqual(['failing', 'recovered']));
  });

  it('of a change is waited for, or not, as is asked', async () => {
    const { store, given } = start((work) => work());
    for (const waits of [true, false]) await store.change(async () => {}, waits);
    expect(given).toEqual([true, false]);
  });
});
