import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { meanwhile } from '../../src/app/meanwhile.ts';

it('works while what was begun goes on, once it had some turns of the event loop to begin', async () => {
  const order: string[] = [];
  const begun = async () => {
    for (let at = 0; at < 3; at += 1) await turn();
    order.push('begun');
    await sleep(300);
    order.push('ended');
    return 'seen';
  };
  expect(await meanwhile({ sleep }, begun(), () => order.push('work'))).toEqual(['seen', 2]);
  expect(order).toEqual(['begun', 'work', 'ended']);
});
it('throws what was thrown there, and does no work when that was at once', async () => {
  let works = 0;
  const work = () => {
    works += 1;
  };
  await expect(meanwhile({ sleep }, Promise.reject(new Error('no tool')), work)).rejects.toThrow('no tool');
  expect(works).toBe(0);
});
