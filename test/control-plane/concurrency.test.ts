import { describe, expect, test } from 'vitest';
import {
  createFairMutex,
  createFairSemaphore,
  createKeyedMutex,
  createSemaphore,
  createTurns,
} from '../../src/control-plane/concurrency.ts';

/** A task that the test ends, and that logs its start. */
function controlled(log: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const task = () => {
    log.push(name);
    return promise;
  };
  return { task, end: () => resolve(name), fail: () => reject(new Error(name)) };
}

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

test('a semaphore runs so many tasks at once, in order, and refuses those beyond its queue', async () => {
  const semaphore = createSemaphore(2, 1, () => new Error('full'));
  const log: string[] = [];
  const [a, b, c] = ['a', 'b', 'c'].map((name) => controlled(log, name));
  if (!a || !b || !c) throw new Error('three were made');
  const running = [semaphore(a.task), semaphore(b.task), semaphore(c.task)];
  await expect(semaphore(async () => 'd')).rejects.toThrow('full');
  expect(log).toEqual(['a', 'b']);
  a.fail();
  await expect(running[0]).rejects.toThrow('a');
  await settle();
  expect(log).toEqual(['a', 'b', 'c']);
  b.end();
  c.end();
  expect(await Promise.all(running.slice(1))).toEqual(['b', 'c']);
  expect(await semaphore(async () => 'e')).toBe('e');
});

test('a semaphore hands a place to the task that waits longest, and a newer task waits', async () => {
  const semaphore = createSemaphore(1, 2, () => new Error('full'));
  const log: string[] = [];
  const tasks = ['a', 'b', 'c', 'd'].map((name) => controlled(log, name));
  const add = (at: number) => semaphore((tasks[at] as (typeof tasks)[number]).task);
  const running = [add(0), add(1), add(2)];
  for (const [at, { end }] of tasks.entries()) {
    end();
    await running[at];
    await settle();
    if (at === 0) running.push(add(3));
    expect(log).toEqual(['a', 'b', 'c', 'd'].slice(0, at + 2));
  }
});

describe('a fair semaphore', () => {
  /** Small letters are one group, others each a group of their own. */
  const groupOf = (key: string) => (/[a-z]/.test(key) ? 'small' : key);

  /** Starts a task for each letter. The first one takes the only place until the call of `start`. */
  function queueUp(names: readonly string[], queue = 64) {
    const semaphore = createFairSemaphore({ width: 1, queue, groupOf, refuse: () => new Error('full') });
    const log: string[] = [];
    const { promise, resolve: start } = Promise.withResolvers<void>();
    const works = names.map((name) => semaphore(name[0] ?? '', () => promise.then(() => log.push(name))));
    return { log, start, settled: Promise.allSettled(works) };
  }

  test('serves the keys in turn, whatever the length of their queues', async () => {
    const { log, start, settled } = queueUp(['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']);
    start();
    await settled;
    expect(log).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
  });

  test('refuses, once full, the newest of the longest queue, and a new task where all have one', async () => {
    const { log, start, settled } = queueUp(['a1', 'a2', 'a3', 'a4', 'b1', 'a5', 'c1', 'd1'], 3);
    start();
    const results = await settled;
    expect(log).toEqual(['a1', 'a2', 'b1', 'c1']);
    expect(results.map(({ status }) => status === 'rejected')).toEqual([0, 0, 1, 1, 0, 1, 0, 1].map(Boolean));
  });

  test('refuses, where all queues have one, the newest of the group with the most, and not a new task of another', async () => {
    const { log, start, settled } = queueUp(['!', 'a', 'b', 'c', 'Z', 'd'], 3);
    start();
    const results = await settled;
    expect(log).toEqual(['!', 'a', 'b', 'Z']);
    expect(results.map(({ status }) => status === 'rejected')).toEqual([0, 0, 0, 1, 0, 1].map(Boolean));
  });

  test('has its whole queue again after tasks were refused', async () => {
    const semaphore = createFairSemaphore({ width: 1, queue: 2, groupOf, refuse: () => new Error('full') });
    for (let times = 0; times < 3; times += 1) {
      // The last one evicts the newest of the first key.
      const works = ['a', 'a', 'a', 'b'].map((key) => semaphore(key, settle));
      const statuses = (await Promise.allSettled(works)).map(({ status }) => status === 'fulfilled');
      expect(statuses).toEqual([true, true, false, true]);
    }
  });

  test('has free places after a failure, and after all tasks are done', async () => {
    const semaphore = createFairSemaphore({ width: 1, queue: 1, groupOf, refuse: () => new Error('full') });
    const works = [semaphore('a', () => Promise.reject(new Error('a'))), semaphore('b', async () => 'b')];
    expect(await Promise.allSettled(works)).toMatchObject([{ status: 'rejected' }, { value: 'b' }]);
    expect(await semaphore('c', async () => 'c')).toBe('c');
  });
});

test('a keyed mutex runs the tasks of one key one after another, after failures too, and those of other keys at once', async () => {
  const take = createKeyedMutex();
  const log: string[] = [];
  const [a, b, c] = ['a', 'b', 'c'].map((name) => controlled(log, name));
  if (!a || !b || !c) throw new Error('three were made');
  const first = take('one', a.task);
  const second = take('one', b.task);
  const other = take('two', c.task);
  await settle();
  expect(log).toEqual(['a', 'c']);
  a.fail();
  await expect(first).rejects.toThrow('a');
  await settle();
  expect(log).toEqual(['a', 'c', 'b']);
  b.end();
  c.end();
  expect(await Promise.all([second, other])).toEqual(['b', 'c']);
});

test('a fair mutex runs one task of a key at once, serves its queues in turn, and refuses the newest of the longest', async () => {
  const take = createFairMutex(3, () => new Error('full'));
  const log: string[] = [];
  const flood = ['a', 'b', 'c', 'd'].map((name) => ({ name, ...controlled(log, name) }));
  const other = controlled(log, 'other');
  const elsewhere = controlled(log, 'elsewhere');
  const settled = Promise.allSettled([
    ...flood.map(({ task }) => take('address', 'flood', task)),
    take('address', 'other', other.task),
    take('another address', 'flood', elsewhere.task),
  ]);
  await settle();
  expect(log).toEqual(['a', 'elsewhere']);
  for (const { end } of [...flood, other, elsewhere]) {
    end();
    await settle();
  }
  expect((await settled).map(({ status }) => status === 'fulfilled')).toEqual([true, true, true, false, true, true]);
  expect(log).toEqual(['a', 'elsewhere', 'b', 'other', 'c']);
});

describe('turns', () => {
  /** Turns whose work the test ends, and the keys in the order of their turns. */
  function open(most?: number) {
    const log: string[] = [];
    let end = Promise.withResolvers<void>();
    const add = createTurns(async (key: string) => {
      log.push(key);
      await end.promise;
    }, most);
    const next = async () => {
      end.resolve();
      end = Promise.withResolvers();
      await settle();
    };
    return { add, next, log };
  }

  test('are of one key at a time, once for what was added before its turn', async () => {
    const { add, next, log } = open();
    for (const key of ['a', 'b', 'c', 'b', 'c']) add(key);
    expect(log).toEqual(['a']);
    await next();
    expect(log).toEqual(['a', 'b']);
    for (let times = 0; times < 3; times += 1) await next();
    expect(log).toEqual(['a', 'b', 'c']);
  });

  test('come again for a key that is added during its turn, and after all were over', async () => {
    const { add, next, log } = open();
    add('a');
    add('a');
    await next();
    expect(log).toEqual(['a', 'a']);
    await next();
    add('a');
    expect(log).toEqual(['a', 'a', 'a']);
  });

  test('drop keys beyond those that may wait', async () => {
    const { add, next, log } = open(2);
    for (const key of ['a', 'b', 'c', 'd']) add(key);
    for (let times = 0; times < 4; times += 1) await next();
    expect(log).toEqual(['a', 'b', 'c']);
  });
});
