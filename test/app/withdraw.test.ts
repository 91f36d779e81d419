import { describe, expect, it } from 'vitest';
import { tellWithdrawn, withdrawnBy } from '../../src/app/withdraw.ts';
import { Unreachable } from '../../src/core/errors.ts';
import { joinedTo } from './desk.ts';
import { mapWithout, one, range, serving, startServing, two } from './serving.ts';

describe('what a connector has out of service', () => {
  it('is nothing while all is well', () => {
    expect(withdrawnBy(serving())).toEqual([]);
  });

  it('is what it serves of what is dead', () => {
    expect(withdrawnBy(serving(), { dead: [range, one], unloaded: null })).toEqual([one]);
  });

  it('is all of it while it is drained, its relaying too, sorted', () => {
    expect(withdrawnBy(serving({ drained: true }))).toEqual([range, one, two]);
  });

  it('is all of it too while its packet rules do not load', () => {
    expect(withdrawnBy(serving(), { dead: [one], unloaded: 'nft failed' })).toEqual([range, one, two]);
  });

  it('is the same when it is out of service already', () => {
    const state = { ...joinedTo(mapWithout([range, one, two])), drained: true };
    expect(withdrawnBy(state)).toEqual([range, one, two]);
    expect(withdrawnBy({ ...state, drained: false }, { dead: [two], unloaded: null })).toEqual([two]);
  });

  it('is nothing for another kind of host, and for one that its network does not list', () => {
    expect(withdrawnBy(serving({ drained: true }, 'origin'))).toEqual([]);
    const unlisted = { ...mapWithout([]), peers: [] };
    expect(withdrawnBy({ ...joinedTo(unlisted), drained: true })).toEqual([]);
  });
});

describe('the control plane', () => {
  it('is told what is out of service, and what is not any more', async () => {
    const state = serving();
    const { tools, withdrawn } = await startServing(state);
    expect(await tellWithdrawn(tools, state, [one])).toBeNull();
    expect(await tellWithdrawn(tools, joinedTo(mapWithout([one])), [])).toBeNull();
    expect(withdrawn).toEqual([[one], []]);
  });

  it('is not asked where its map says so already, in whatever order', async () => {
    const { tools, withdrawn } = await startServing(serving());
    expect(await tellWithdrawn(tools, serving(), [])).toBeNull();
    expect(await tellWithdrawn(tools, joinedTo(mapWithout([two, range, one])), [range, one, two])).toBeNull();
    expect(withdrawn).toEqual([]);
  });

  it('is not asked where there is no token', async () => {
    const { membership, ...state } = serving();
    const desk = await startServing(serving());
    const tokenless = { ...state, membership: { ...membership, accessToken: null } };
    expect(await tellWithdrawn(desk.tools, tokenless, [one])).toBeNull();
    expect(desk.patience).toBeUndefined();
  });

  it('that cannot be told is what is returned', async () => {
    const desk = await startServing(serving());
    const error = new Unreachable('https://x', 'refused', { delivered: false, heard: true, retryAfterMs: null });
    desk.withdraws = () => Promise.reject(error);
    expect(await tellWithdrawn(desk.tools, serving(), [one])).toBe(error);
    desk.withdraws = () => Promise.reject(new TypeError('a bug'));
    await expect(tellWithdrawn(desk.tools, serving(), [one])).rejects.toThrow('a bug');
  });
});
