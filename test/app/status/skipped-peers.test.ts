import { describe, expect, it } from 'vitest';
import { connectPeerService } from '../../../src/api/peer-service.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { ProblemListener } from '../../../src/app/run/listeners/problem-listener.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import type { Tools } from '../../../src/app/tools.ts';
import { dialled, keyPair, peer } from '../../core/samples.ts';
import { startForeignService } from '../../plain/foreign-service.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { passOf } from '../run/pass-of.ts';
import { SimulatedHost } from '../simulated-host.ts';

const own = { id: 1, name: 'peer-1', public_key: keyPair(1).publicKey, address: '10.77.0.1' };
const good = { id: 2, name: 'good', public_key: keyPair(2).publicKey, address: '10.77.0.2' };
const bad = { id: 3, name: 'bad', public_key: keyPair(3).publicKey, address: '10.77.0.3' };

/** A host in a network of a foreign service, which lists these. */
async function joined(peers: object[]) {
  const service = await startForeignService({
    network: { id: 7, name: 'office', private_cidr: '10.77.0.0/24' },
    peers: peers as Record<string, unknown>[],
  });
  service.answers['GET /api/networks/7'] = (response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data: service.whole }));
  };
  const known = mapAt(null, [peer(2, { endpoint: dialled(2) })]);
  const simulated = await SimulatedHost.with(joinedTo(known, { service: service.address, features: [] }));
  const warnings: string[] = [];
  const tools: Tools = {
    ...simulated.tools,
    connect: async ({ service: at, features }, patience) => connectPeerService(at, features ?? [], patience),
    warn: (text) => warnings.push(text),
  };
  return { service, simulated, tools, warnings };
}

describe('a peer that cannot be used', () => {
  it.each([
    ['an unknown type', { peer_type: 'gateway' }, 'peer_type must be one of connector, admin_device, origin'],
    ['an endpoint without a port', { endpoint: '203.0.113.7' }, 'endpoint is not an endpoint'],
    ['an impossible key', { public_key: Buffer.alloc(32).toString('base64') }, 'public_key'],
  ])('for %s is skipped and named, and everything else applies', async (_, changes, reason) => {
    const { simulated, tools, warnings } = await joined([own, good, { ...bad, ...changes }]);
    const [report] = await reconcileNetworks(tools);
    expect([report?.failure, report?.unsynced]).toEqual([null, null]);
    const { membership } = await simulated.state();
    expect(membership.map.peers.map(({ name }) => name)).toEqual(['peer-1', 'good']);
    const said = expect.stringContaining(`peer bad (3) is skipped: ${reason}`);
    expect(warnings).toContainEqual(said);
    const [status] = await readStatus(tools);
    expect(status?.warnings).toContainEqual(said);
    expect(status?.peers.map(({ name }) => name)).toEqual(['good']);
  });

  it('is logged by the daemon once while that lasts', async () => {
    const { simulated, tools, service } = await joined([own, good, { ...bad, endpoint: 'nowhere' }]);
    const watch = new ProblemListener(tools);
    const look = async () => {
      await reconcileNetworks(tools);
      watch.onPass(passOf(await evaluateNetwork(tools, await simulated.state())));
    };
    const logged = () => simulated.logged.filter(({ message }) => message === 'a peer that cannot be used is skipped');
    await look();
    await look();
    expect(logged()).toMatchObject([{ level: 'warn', facts: { interface: 'cpn0', peer: 3, name: 'bad' } }]);
    service.peers = [own, good, bad];
    await look();
    service.peers = [own, good, { ...bad, endpoint: 'nowhere' }];
    await look();
    expect(logged()).toHaveLength(2);
  });

  it.each([
    ['under its id', [{ ...own, endpoint: 'nowhere' }, good]],
    ['under its address', [own, good, { ...bad, address: own.address }]],
    ['under its key', [own, good, { ...bad, public_key: own.public_key }]],
    ['under its key alone', [{ ...own, id: 9, address: '10.78.0.1' }, good]],
  ])('is none where it stands for this host %s: nothing of such a map is taken', async (_, peers) => {
    const { simulated, tools } = await joined(peers);
    const before = await simulated.state();
    const [report] = await reconcileNetworks(tools);
    expect(report?.unsynced).toMatchObject({
      name: 'BadReply',
      message: expect.stringContaining('has an entry for this host that cannot be used'),
    });
    expect((await simulated.state()).membership).toEqual(before.membership);
  });
});
