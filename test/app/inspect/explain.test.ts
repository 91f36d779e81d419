import { expect, it } from 'vitest';
import { explainAddress } from '../../../src/app/inspect/explain.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { Refused, Unreachable } from '../../../src/core/errors/index.ts';
import type { Host } from '../../../src/host/host.ts';
import { into } from '../../core/explain/samples.ts';
import { dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail } from '../simulated-service.ts';

it('an explanation looks up the way of the marked packets to the endpoint of the peer', async () => {
  const other = peer(2, { endpoint: dialled(2) });
  const map = mapAt('"1"', [other]);
  const simulated = await SimulatedHost.with(joinedTo(map));
  simulated.service.mapReplies = [answerWith(map)];
  await reconcileNetworks(simulated.tools);
  simulated.actual = {
    ...simulated.actual,
    device: simulated.actual.device && { ...simulated.actual.device, fwmark: 0x2053 },
  };
  const host: Host = {
    ...simulated.tools.host,
    route: async (to, packet) =>
      to === other.address
        ? into('10.77.0.0/24', { source: null })
        : { link: null, why: packet?.mark === 0x2053 ? 'none' : 'blackhole' },
  };
  expect((await explainAddress({ ...simulated.tools, host }, other.address)).stop).toMatchObject({
    check: 'endpoint',
    detail: expect.stringMatching(/^peer-2 at 203\.0\.113\.2:51820: this host has no route there$/),
  });
});

it('an explanation reports that the control plane refuses the newest map', async () => {
  const other = peer(2, { endpoint: dialled(2) });
  const map = mapAt('"1"', [other]);
  const simulated = await SimulatedHost.with(joinedTo(map));
  simulated.service.mapReplies = [
    answerWith(map),
    fail(new Refused(401, 'reading network 7', 'Unauthenticated', 'join again')),
    fail(new Unreachable('https://203.0.113.99', 'silent', { delivered: false, heard: false, retryAfterMs: null })),
    answerWith(map),
  ];
  const tools = { ...simulated.tools, host: { ...simulated.tools.host, route: async () => into('10.77.0.0/24') } };
  const explain = async () => (await explainAddress(tools, other.address)).checks[0];
  await reconcileNetworks(simulated.tools);
  expect(await explain()).toMatchObject({ check: 'network', ok: true });
  const refused = {
    check: 'network',
    ok: null,
    detail: expect.stringMatching(/sync refused \(token\)$/),
    remedy: 'reading network 7 was refused (401): Unauthenticated; join again',
  };
  await reconcileNetworks(simulated.tools);
  expect(await explain()).toMatchObject(refused);
  await reconcileNetworks(simulated.tools);
  expect(await explain()).toMatchObject(refused);
  expect((await simulated.tools.store.readNotes('cpn0')).sync).toMatchObject({
    error: expect.stringContaining('silent'),
  });
  await reconcileNetworks(simulated.tools);
  expect(await explain()).toMatchObject({ check: 'network', ok: true });
  expect((await simulated.tools.store.readNotes('cpn0')).sync).not.toHaveProperty('refusal');
});
