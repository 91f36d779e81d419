import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { awaitRoute, DataCenter, type PeerSeen, routesOf, serverAddress } from './data-center.ts';
import { patiently, plan, status } from './office.ts';

/** Each test begins where the one before ended. */
const inOrder = { concurrent: false, timeout: 120_000 };

const peerOf = async (host: Host, name: string): Promise<PeerSeen> =>
  (await status(host)).peers.find((peer: PeerSeen) => peer.name === name);

const dropProbes = (host: Host) =>
  host.exec(['nft', '-f', '-'], {
    input: 'table inet strict {\nchain input {\ntype filter hook input priority 0\niifname "cpn0" drop\n}\n}\n',
  });

/** Drops the probes again as soon as the host answered one of them. */
async function reloadFirewall(host: Host): Promise<void> {
  await host.exec(['nft', '-f', '-'], {
    input:
      'delete table inet strict\ntable inet answers {\nchain output {\ntype filter hook output priority 0\noifname "cpn0" tcp flags rst counter\n}\n}\n',
  });
  await eventually('a probe is answered', async () =>
    /counter packets [1-9]/.test((await host.exec(['nft', 'list', 'table', 'inet', 'answers'])).stdout),
  );
  await dropProbes(host);
}

// Both mostly wait: for a probation of 60 s, or for probes.
describe.concurrent('two connectors in front of one LAN', () => {
  let center: DataCenter;
  let first: Host;
  let second: Host;
  let origin: Host;
  let neighbour: Host;

  beforeAll(async () => {
    center = await DataCenter.start();
    ({ first, second, origin } = await center.addPair());
    neighbour = await center.addOrigin('neighbour', '203.0.113.23');
    await origin.ping(center.address(neighbour), patiently);
  });
  afterAll(() => center?.stop());

  test('have one that serves the route; the other stands by and is kept warm', inOrder, async () => {
    expect(await awaitRoute(origin, first)).toEqual([
      { prefix: '192.168.50.0/24', via: 'edge-1', state: 'active' },
      { prefix: '192.168.50.0/24', via: 'edge-2', state: 'standby' },
    ]);
    expect(await origin.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
    const { rx_bytes: before } = await peerOf(origin, 'edge-2');
    await eventually('the standby is probed too', async () => (await peerOf(origin, 'edge-2')).rx_bytes > before);
  });

  test(
    'when the one falls silent the other takes over, flows resume, and no other tunnel is touched',
    inOrder,
    async () => {
      const flow = origin.spawn(['ping', '-n', '-i', '0.2', '-c', '1000', serverAddress]);
      const other = origin.spawn(['ping', '-n', '-i', '0.05', '-c', '100', center.address(neighbour)]);
      await flow.waitForLine(/icmp_seq=(?:[3-9]|\d\d+) /);
      const mark = center.daemon(origin).mark();
      await first.uplink.cut();

      expect(await awaitRoute(origin, second)).toMatchObject([
        { via: 'edge-2', state: 'active' },
        { via: 'edge-1', state: 'standby', reason: 'does not answer' },
      ]);
      const seen = flow.output.stdout.split('\n').length;
      await eventually('the same flow goes on', () => flow.output.stdout.split('\n').length > seen + 5);
      await flow.stop();
      expect((await other.exited).stdout).toContain('100 packets transmitted, 100 received');
      expect(await peerOf(origin, 'edge-1')).toMatchObject({ state: 'stale' });
      expect(await peerOf(origin, 'edge-2')).toMatchObject({ state: 'connected' });
      const log = center.daemon(origin).since(mark);
      expect(log.find(({ level }) => level === 40)).toMatchObject({ peer: 'edge-1' });
      // The file on disk is current: a boot from it would use the second too, and a pass has nothing to do.
      expect(await plan(origin)).toEqual({ exitCode: 0, changes: [] });
    },
  );

  test('one that comes back is on probation first, and in service again only then', inOrder, async () => {
    await first.uplink.restore();
    await eventually(
      'its packets arrive again',
      async () => (await routesOf(origin))[1]?.reason?.startsWith('answers again'),
      {
        timeoutMs: 40_000,
        everyMs: 200,
      },
    );
    expect(await routesOf(origin)).toMatchObject([{ via: 'edge-2', state: 'active' }, { via: 'edge-1' }]);
    await awaitRoute(origin, first, 90_000);
    expect(await origin.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
  });
});

describe.concurrent('two connectors in front of one LAN, in another lab', () => {
  let center: DataCenter;
  let first: Host;
  let second: Host;
  let origin: Host;

  beforeAll(async () => {
    center = await DataCenter.start();
    ({ first, second, origin } = await center.addPair());
    await awaitRoute(origin, first);
  });
  afterAll(() => center?.stop());

  test(
    'one whose firewall drops the probes is live as long as packets of it arrive, also after a reload',
    inOrder,
    async () => {
      await dropProbes(first);
      // For a daemon that has never received an answer from it.
      await center.restartDaemon(origin);
      const mark = center.daemon(origin).mark();
      // Its counters begin at 0 again when a handshake is triggered.
      let { rx_bytes: known } = await peerOf(origin, 'edge-1');
      const isHeard = async () => {
        const { rx_bytes: received } = await peerOf(origin, 'edge-1');
        const isMore = received > known;
        known = received;
        return isMore;
      };
      const bounds = { timeoutMs: 60_000, everyMs: 500 };
      // Those of the new sessions come soon after each other, and no probe is missed meanwhile.
      await eventually('no packets arrive', async () => {
        await sleep(3000);
        return !(await isHeard());
      });
      for (const which of ['first', 'second']) await eventually(`its ${which} packets arrive`, isHeard, bounds);
      await reloadFirewall(first);
      await isHeard();
      await eventually('its packets arrive after the reload', isHeard, bounds);
      expect(await routesOf(origin)).toMatchObject([{ via: 'edge-1', state: 'active' }, { via: 'edge-2' }]);
      expect(
        center
          .daemon(origin)
          .since(mark)
          .filter(({ level }) => level > 30),
      ).toEqual([]);
      await first.uplink.cut();
      await awaitRoute(origin, second, 60_000);
      expect(await origin.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
    },
  );

  test(
    'a dead one takes no route of one that was heard later, while this host is cut off itself',
    inOrder,
    async () => {
      await center.prefer(first);
      const mark = center.daemon(origin).mark();
      await origin.uplink.cut();
      await eventually('both are silent', async () => {
        const reasons = (await routesOf(origin)).map(({ reason }) => reason);
        return reasons.every((reason) => reason === 'does not answer');
      });
      expect(await routesOf(origin)).toMatchObject([{ via: 'edge-2', state: 'active' }, { via: 'edge-1' }]);
      await origin.uplink.restore();
      await eventually('it is trusted again', () =>
        center
          .daemon(origin)
          .since(mark)
          .some(({ level, peer }) => level === 30 && peer === 'edge-2'),
      );
      expect(await routesOf(origin)).toMatchObject([{ via: 'edge-2', state: 'active' }, { via: 'edge-1' }]);
    },
  );
});
