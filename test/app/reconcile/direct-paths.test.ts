import { describe, expect, it } from 'vitest';
import { describeEvaluation } from '../../../src/app/problems/describe-evaluation.ts';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import type { Prefix } from '../../../src/core/net/cidr.ts';
import { hostPrefix } from '../../../src/core/net/cidr.ts';
import { probePrefixOf } from '../../../src/core/paths/probe-address.ts';
import { noNotes } from '../../../src/store/notes.ts';
import { bare, dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const relay = peer(2, { type: 'connector', endpoint: dialled(2) });
const phone = peer(4);
const map = mapAt('"1"', [relay, phone], { relay: 2 });
const [own, probe] = [hostPrefix(phone.address), probePrefixOf(7, 4)];

/** A host that is up, with peer 4 in WireGuard's table as the daemon left it. */
async function withPeer(allowedIps: readonly Prefix[]): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(joinedTo(map));
  simulated.actual = bare;
  simulated.service.mapReplies = [answerWith(map)];
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  const { device } = simulated.actual;
  const found = { publicKey: phone.publicKey, presharedKey: null, endpoint: dialled(4), allowedIps, keepalive: 25 };
  const entry = { ...found, latestHandshake: now(simulated) - 2, rxBytes: 180, txBytes: 244 };
  simulated.actual = { ...simulated.actual, device: device && { ...device, peers: [...device.peers, entry as never] } };
  return simulated;
}

const now = ({ tools }: SimulatedHost) => Math.floor(tools.now().getTime() / 1_000);

/** The state of peer 4 in `cpn status`, and through which peer. */
async function stateOf(simulated: SimulatedHost) {
  const evaluation = await evaluateNetwork(simulated.tools, await simulated.state());
  const { peers } = describeEvaluation(evaluation, noNotes, now(simulated));
  return peers.find(({ id }) => id === 4)?.state;
}

describe('a direct path in the table of WireGuard', () => {
  it('needs no change in any process, and is not in the wg-quick file', async () => {
    const simulated = await withPeer([own, probe]);
    const before = await simulated.tools.store.readConfig('cpn0');
    const { steps, changes, desired } = await evaluateNetwork(simulated.tools, await simulated.state());
    expect([steps, changes]).toEqual([[], []]);
    expect(desired.config.peers.map(({ publicKey }) => publicKey)).toContain(phone.publicKey);
    await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
    expect(await simulated.tools.store.readConfig('cpn0')).toBe(before);
    expect(before).not.toContain(phone.publicKey);
    expect(await stateOf(simulated)).toBe('connected');
  });

  it('ends with the set of paths of the daemon', async () => {
    const simulated = await withPeer([own, probe]);
    const { steps } = await evaluateNetwork(simulated.tools, await simulated.state(), { paths: [] });
    expect(steps).toMatchObject([{ do: 'remove-peers', publicKeys: [phone.publicKey] }]);
  });
});

describe('a peer under trial in the table of WireGuard', () => {
  it('stays there through a pass, and is shown as relayed', async () => {
    const simulated = await withPeer([probe]);
    const tried = await stateOf(simulated);
    await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
    expect(simulated.actual.device?.peers.map(({ publicKey }) => publicKey)).toContain(phone.publicKey);
    const { peers } = simulated.actual.device ?? { peers: [] };
    simulated.actual = {
      ...simulated.actual,
      device: simulated.actual.device && { ...simulated.actual.device, peers: peers.slice(0, 1) },
    };
    expect(tried).toBe(await stateOf(simulated));
    expect(tried).not.toBe('connected');
  });
});
