import { describe, expect, it } from 'vitest';
import { reportLoading, reportWithdrawn, withdrawnBy } from '../../../src/app/lan/withdraw.ts';
import { Unreachable } from '../../../src/core/errors/index.ts';
import { joinedTo } from '../joined-state.ts';
import { mapWithout, one, range, serving, startServing, two } from '../serving.ts';

describe('what a connector has out of service', () => {
  it('is nothing while all is well', () => {
    expect(withdrawnBy(serving())).toEqual([]);
  });

  it('is what it serves of what is dead', () => {
    expect(withdrawnBy(serving(), { dead: [range, one], ways: null, unloaded: null })).toEqual([one]);
  });

  it('is the served prefixes that it has no route to', () => {
    const way = { isOwn: true, links: ['eth1'], gone: null };
    const ways = { [one]: { ...way, gone: 'eth1 is down, or has no carrier' }, [two]: way };
    expect(withdrawnBy(serving(), { dead: [], ways, unloaded: null })).toEqual([one]);
  });

  it('is all of it while it is drained, its relaying too, sorted', () => {
    expect(withdrawnBy(serving({ drained: true }))).toEqual([range, one, two]);
  });

  it('is all of it too while its packet rules do not load', () => {
    expect(withdrawnBy(serving(), { dead: [one], ways: null, unloaded: 'nft failed' })).toEqual([range, one, two]);
  });

  it('is the same when it is out of service already', () => {
    const state = { ...joinedTo(mapWithout([range, one, two])), drained: true };
    expect(withdrawnBy(state)).toEqual([range, one, two]);
    expect(withdrawnBy({ ...state, drained: false }, { dead: [two], ways: null, unloaded: null })).toEqual([two]);
  });

  it('is nothing for another kind of host, and for one that its network does not list', () => {
    expect(withdrawnBy(serving({ drained: true }, 'origin'))).toEqual([]);
    const unlisted = { ...mapWithout([]), peers: [] };
    expect(withdrawnBy({ ...joinedTo(unlisted), drained: true })).toEqual([]);
  });
});

describe('the control plane', () => {
  it('receives the withdrawn prefixes, and that none is withdrawn any more', async () => {
    const state = serving();
    const {
      tools,
      service: { withdrawn },
    } = await startServing(state);
    expect(await reportWithdrawn(tools, state, [one])).toBeNull();
    expect(await reportWithdrawn(tools, joinedTo(mapWithout([one])), [])).toBeNull();
    expect(withdrawn).toEqual([[one], []]);
  });

  it('gets no request when its map lists them already, in any order', async () => {
    const {
      tools,
      service: { withdrawn },
    } = await startServing(serving());
    expect(await reportWithdrawn(tools, serving(), [])).toBeNull();
    expect(await reportWithdrawn(tools, joinedTo(mapWithout([two, range, one])), [range, one, two])).toBeNull();
    expect(withdrawn).toEqual([]);
  });

  it('gets no request without a token', async () => {
    const { membership, ...state } = serving();
    const simulated = await startServing(serving());
    const tokenless = { ...state, membership: { ...membership, accessToken: null } };
    expect(await reportWithdrawn(simulated.tools, tokenless, [one])).toBeNull();
    expect(simulated.service.connectOptions).toBeUndefined();
  });

  it('that is unreachable makes the result that error', async () => {
    const simulated = await startServing(serving());
    const error = new Unreachable('https://x', 'refused', { delivered: false, heard: true, retryAfterMs: null });
    simulated.service.onWithdraw = () => Promise.reject(error);
    expect(await reportWithdrawn(simulated.tools, serving(), [one])).toBe(error);
    simulated.service.onWithdraw = () => Promise.reject(new TypeError('a bug'));
    await expect(reportWithdrawn(simulated.tools, serving(), [one])).rejects.toThrow('a bug');
  });
});

describe('the report after packet rules failed to load, or loaded again', () => {
  it('comes from a connector, whatever its map lists, and a failure is a warning', async () => {
    const { tools, service } = await startServing(serving());
    const warnings: string[] = [];
    tools.warn = (text) => void warnings.push(text);
    await tools.store.amendNotes('cpn0', { unloaded: 'nft failed' });
    await reportLoading(tools, serving());
    await tools.store.amendNotes('cpn0', { unloaded: null });
    await reportLoading(tools, serving());
    await reportLoading(tools, serving({}, 'origin'));
    expect([service.withdrawn, warnings]).toEqual([[[range, one, two], []], []]);
    const error = new Unreachable('https://x', 'refused', { delivered: false, heard: true, retryAfterMs: null });
    service.onWithdraw = () => Promise.reject(error);
    await reportLoading(tools, serving());
    expect(warnings).toEqual([error.message]);
  });
});
