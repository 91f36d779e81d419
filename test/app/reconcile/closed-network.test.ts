import { describe, expect, it } from 'vitest';
import { locateServices } from '../../../src/app/reconcile/names/resolve-names.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { NotConfirmed, Unreachable } from '../../../src/core/errors/index.ts';
import { withoutTool } from '../../../src/core/forward/own-table.ts';
import type { AccessRules } from '../../../src/core/map/access-rules.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import { parseProxy } from '../../../src/core/net/proxy.ts';
import { address, dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail } from '../simulated-service.ts';

const options = { withinMs: 20_000 };
const gone = new Unreachable('https://203.0.113.99', 'gone', { delivered: false, heard: false, retryAfterMs: null });
const ports: Record<string, number> = { ssh: 22, web: 80 };
const rule = (name: string): AccessRules['rules'][number] => ({
  ...{
    name,
    from: [{ kind: 'peer', id: 2 }],
    to: [{ kind: 'any' }],
    protocol: 'tcp',
    ports: [{ first: ports[name] ?? 0, last: ports[name] ?? 0 }],
  },
});
const closed = (...names: string[]): AccessRules => ({ rules: names.map(rule), requiresEnforcement: false });
const others = [2, 3].map((number) => peer(number, { endpoint: dialled(number) }));

const connector = peer(4, { type: 'connector', endpoint: dialled(4) });

async function startIn(map: NetworkMap, refuses: SimulatedHost['refusesStep'] = () => false): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(joinedTo(map));
  simulated.service.mapReplies = [answerWith(map)];
  simulated.refusesStep = refuses;
  simulated.onHandshakeTrigger = () => {};
  return simulated;
}

const carriedBy = ({ actual }: SimulatedHost) => actual.device?.peers.map(({ allowedIps }) => allowedIps);
const bothPeers = [['10.77.0.2/32'], ['10.77.0.3/32']];
const nothing = [[], []];

describe('a host of a closed network', () => {
  const inLan = address('192.168.50.9');
  const own = [inLan];
  const at = (url: string, proxy: string | null = null) => {
    const joined = joinedTo(mapAt('"1"', others));
    const service = {
      ...joined.service,
      url,
      proxy: proxy === null ? ('none' as const) : parseProxy(proxy, '--proxy'),
    };
    return locateServices({ ...joined, service }, own).map((each) => `${each.address}:${each.port}`);
  };

  it('never filters the control plane, also at its own tunnel address if that runs here', () => {
    expect(at('https://192.168.50.7')).toEqual(['192.168.50.7:443']);
    expect(at('https://192.168.50.9:8443')).toEqual(['192.168.50.9:8443', '10.77.0.1:8443']);
  });

  it.each(['http://127.0.0.1:3128', 'http://192.168.50.9:3128', 'http://192.168.50.7:3128'])(
    'filters connections to %s, the proxy through which it reaches the control plane',
    (proxy) => {
      expect(at('https://192.0.2.1', proxy)).toEqual([]);
    },
  );

  it('loads the packet filter before it configures any peer', async () => {
    const simulated = await startIn({ ...mapAt('"1"', others), rules: closed('ssh') });
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    const steps = simulated.steps.map((step) => step.do);
    expect(steps.indexOf('set-firewall')).toBeGreaterThan(-1);
    expect(steps.indexOf('set-firewall')).toBeLessThan(steps.indexOf('configure-device'));
    expect(carriedBy(simulated)).toEqual(bothPeers);
  });

  it('makes handshakes and carries nothing while the filter does not load, and all once it does', async () => {
    let loads = false;
    const map = { ...mapAt('"1"', others), rules: closed('ssh') };
    const simulated = await startIn(map, (step) => step.do === 'set-firewall' && !loads);
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(carriedBy(simulated)).toEqual(nothing);
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(carriedBy(simulated)).toEqual(nothing);
    loads = true;
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(carriedBy(simulated)).toEqual(bothPeers);
  });

  it('stops what it carries when the network is closed and the filter does not load', async () => {
    const open = mapAt('"1"', others);
    const simulated = await startIn(open);
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(carriedBy(simulated)).toEqual(bothPeers);
    simulated.refusesStep = (step) => step.do === 'set-firewall';
    const map = { ...mapAt('"2"', others), rules: closed() };
    simulated.service.mapReplies = [answerWith(map)];
    await passNetwork(simulated.tools, 'cpn0', { ...noUpdate, map, resolved: null }, options);
    expect(carriedBy(simulated)).toEqual(nothing);
  });

  it('carries nothing without nft', async () => {
    const simulated = await startIn({ ...mapAt('"1"', others), rules: closed('ssh') });
    simulated.actual = { ...simulated.actual, firewall: [withoutTool] };
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(carriedBy(simulated)).toEqual(nothing);
  });

  it.each<[string, string, string | null]>([
    ['at a tunnel address', 'http://10.77.0.3:8787', '10.77.0.3 ct original proto-dst 8787'],
    ['at a tunnel address, with the usual port', 'https://10.77.0.3', '10.77.0.3 ct original proto-dst 443'],
    ['on loopback of this host', 'http://127.0.0.1:8787', '10.77.0.1 ct original proto-dst 8787'],
    ['at another address of this host', 'https://203.0.113.22', '10.77.0.1 ct original proto-dst 443'],
    ['outside', 'https://203.0.113.99', null],
  ])('leaves the port of its control plane open, %s', async (_, url, open) => {
    const map = { ...mapAt('"1"', others), rules: closed() };
    const simulated = await startIn(map);
    await simulated.tools.store.write({ ...joinedTo(map), service: { url, insecureHttp: true } });
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    const texts = simulated.steps.flatMap((step) =>
      step.do === 'set-firewall' ? step.firewall.rules.map(({ text }) => text) : [],
    );
    const ports = texts.flatMap(
      (text) => /^iifname "cpn0" meta l4proto tcp ct original ip daddr (.*) accept$/.exec(text)?.[1] ?? [],
    );
    expect([...new Set(ports)]).toEqual(open === null ? [] : [open]);
  });

  it.each([
    ['fewer rules', closed('ssh', 'web'), closed('web')],
    ['the first rules', undefined, closed('web')],
    ['no rules', closed('web'), undefined],
  ])('awaits no confirmation of %s, so that the next revocation does not wait for it', async (_, before, after) => {
    const mapWith = (revision: string, rules?: AccessRules) => ({
      ...mapAt(revision, others),
      ...(rules && { rules }),
    });
    const simulated = await startIn(mapWith('"1"', before));
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    simulated.service.mapReplies = [fail(gone)];
    const asked = simulated.service.mapRequests.length;
    const map = mapWith('"2"', after);
    await passNetwork(simulated.tools, 'cpn0', { ...noUpdate, map, resolved: null }, options);
    expect((await simulated.state()).membership.map).toEqual(map);
    expect(simulated.service.mapRequests).toHaveLength(asked);
  });

  it('keeps a revocation although nothing confirms the rest of the change', async () => {
    const before = { ...mapAt('"1"', others), rules: closed('ssh', 'web') };
    const simulated = await startIn(before);
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    const at = Math.floor(simulated.tools.now().getTime() / 1000);
    for (const number of [2, 3]) simulated.updatePeer(number, { latestHandshake: at - 10 });
    const newer = {
      ...mapAt('"2"', [...others, connector], { routes: [parsePrefix('192.168.60.0/24')] }),
      rules: closed('web'),
    };
    simulated.service.mapReplies = [fail(gone)];
    const update = { ...noUpdate, map: newer, resolved: null };
    await expect(passNetwork(simulated.tools, 'cpn0', update, options)).rejects.toBeInstanceOf(NotConfirmed);
    const { membership } = await simulated.state();
    expect(membership.map).toMatchObject({ revision: '"1"', routes: before.routes, rules: newer.rules });
    const loaded = simulated.steps.flatMap((step) => (step.do === 'set-firewall' ? [step.firewall.access] : []));
    expect(loaded.map((access) => JSON.stringify(access).includes('dst { 22, 80 }'))).toEqual([true, false]);
  });
});
