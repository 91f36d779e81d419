import { describe, expect, it } from 'vitest';
import { planNetworks, reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { findUnread, passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import { HostUnread, NotConfirmed, Unreachable } from '../../../src/core/errors/index.ts';
import type { Device } from '../../../src/core/host-state/actual.ts';
import { bare, dialled, keyPair, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail } from '../simulated-service.ts';

const relay = peer(2, { type: 'connector', endpoint: dialled(2) });
const others = [peer(3, { endpoint: dialled(3) }), peer(4, { endpoint: dialled(4) })];
const removed = peer(5, { endpoint: dialled(5) });
const before = mapAt('"1"', [relay, ...others, removed]);
const after = mapAt('"2"', [relay, ...others]);
const options = { withinMs: 20_000 };
const gone = new Unreachable('https://203.0.113.99', 'gone', { delivered: false, heard: false, retryAfterMs: null });

/** A host that was as its state says, and of which WireGuard's own table alone can be read since. */
async function unreadDesk(change: (device: Device) => Device = (device) => device): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(joinedTo(before));
  await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
  const { device } = simulated.actual;
  if (device === null) throw new Error('there is no device');
  simulated.actual = { ...bare, device: change(device), unread: 'ip did not finish' };
  simulated.steps.length = 0;
  return simulated;
}

const keysOf = (simulated: SimulatedHost) => simulated.actual.device?.peers.map(({ publicKey }) => publicKey);

describe('a pass over a host that cannot be observed', () => {
  it('changes nothing while the network takes nothing away, and names what cannot be read', async () => {
    const simulated = await unreadDesk();
    const pass = await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(pass).toMatchObject({ changes: [] });
    expect(findUnread(pass?.evaluation)).toBeInstanceOf(HostUnread);
    expect(findUnread(pass?.evaluation)?.message).toContain('ip did not finish');
    expect(simulated.steps).toEqual([]);
  });

  it('removes the peer that the network removed, and leaves state and file to a whole pass', async () => {
    const simulated = await unreadDesk();
    simulated.service.mapReplies.push(answerWith(after));
    const { store } = simulated.tools;
    const [state, file] = [await store.read('cpn0'), await store.readConfig('cpn0')];
    await passNetwork(simulated.tools, 'cpn0', { map: after, resolved: null }, options);
    expect(keysOf(simulated)).not.toContain(removed.publicKey);
    expect(keysOf(simulated)).toHaveLength(3);
    expect(await store.read('cpn0')).toEqual(state);
    expect(await store.readConfig('cpn0')).toEqual(file);
  });

  it('takes a removal back that nothing confirms', async () => {
    const simulated = await unreadDesk();
    simulated.service.mapReplies.push(fail(gone));
    const peers = keysOf(simulated);
    const pass = passNetwork(simulated.tools, 'cpn0', { map: after, resolved: null }, options);
    await expect(pass).rejects.toBeInstanceOf(NotConfirmed);
    expect(keysOf(simulated)?.toSorted()).toEqual(peers?.toSorted());
  });

  it('leaves an interface alone that has a key of another program', async () => {
    const simulated = await unreadDesk((device) => ({ ...device, publicKey: keyPair(9).publicKey }));
    simulated.service.mapReplies.push(answerWith(after));
    const pass = passNetwork(simulated.tools, 'cpn0', { map: after, resolved: null }, options);
    await expect(pass).rejects.toThrow('was not made by cpn');
    expect(simulated.steps).toEqual([]);
  });

  it('is a failure of plan and reconcile that has its changes, and a warning of status', async () => {
    const simulated = await unreadDesk();
    simulated.service.mapReplies.push(answerWith(after));
    const change = { action: 'remove', kind: 'peer', target: removed.publicKey };
    const failure = expect.any(HostUnread);
    expect(await planNetworks(simulated.tools)).toMatchObject([{ changes: [change], failure }]);
    expect(await readStatus(simulated.tools)).toMatchObject([
      { state: 'degraded', failure: null, warnings: [expect.stringContaining('ip did not finish')] },
    ]);
    expect(await reconcileNetworks(simulated.tools)).toMatchObject([{ changes: [change], failure }]);
    expect(keysOf(simulated)).not.toContain(removed.publicKey);
  });
});
