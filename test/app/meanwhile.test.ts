import { expect, it } from 'vitest';
import { meanwhile } from '../../src/app/meanwhile.ts';

it('works while what was begun goes on, once it had the time to begin', async () => {
  const order: string[] = [];
  const time = Promise.withResolvers<void>();
  const seen = Promise.withResolvers<string>();
  const both = meanwhile({ sleep: () => time.promise }, seen.promise, () => order.push('work'));
  order.push('begun');
  time.resolve();
  await time.promise;
  await Promise.resolve();
  order.push('ended');
  seen.resolve('seen');
  expect(await both).toEqual(['seen', 2]);
  expect(order).toEqual(['begun', 'work', 'ended']);
});

it('does not wait for its time where what was begun is over before', async () => {
  const never = new Promise(() => {});
  expect(await meanwhile({ sleep: () => never }, Promise.resolve('seen'), () => 'done')).toEqual(['seen', 'done']);
});

it('throws what was thrown there, and does no work when that was at once', async () => {
  let works = 0;
  const work = () => {
    works += 1;
  };
  const never = new Promise(() => {});
  await expect(meanwhile({ sleep: () => never }, Promise.reject(new Error('no tool')), work)).rejects.toThrow(
    'no tool',
  );
  expect(works).toBe(0);
});
