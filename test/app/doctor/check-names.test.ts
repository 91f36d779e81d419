import { expect, it } from 'vitest';
import { examine } from '../../../src/app/doctor/examine.ts';
import type { OtherDomain } from '../../../src/core/host-state/actual.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { address, dialled, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { startExaminedHost } from './examined-host.ts';

const lan = prefix('192.168.50.0/24');
const server = address('192.168.50.53');
const edge = peer(2, { name: 'edge', type: 'connector', endpoint: dialled(2), routes: null });
const routeDns = [{ route: lan, servers: [server], domains: ['corp.example'] }];
const map = mapAt('"1"', [edge], { routes: [lan], routeDns });
const bypassing = { mode: 'uplink', hasStub: true, nameservers: [address('203.0.113.53')], sources: ['dns'] };

/** A host in a network with a domain behind a route. */
async function start() {
  const inspects = { resolvedMode: async () => bypassing };
  const { simulated, tools } = await startExaminedHost(map, {}, inspects);
  const asked: string[] = [];
  tools.host.queryDomain = async (servers, domain, source) => {
    asked.push(`${servers} ${domain} from ${source}`);
    return 'silent';
  };
  const resolve = (others: readonly OtherDomain[]) => {
    simulated.actual = {
      ...simulated.actual,
      dns: { program: 'systemd-resolved', own: null, others, isServing: false },
    };
  };
  resolve([]);
  const find = async () => (await examine(tools)).flatMap(({ subject, found }) => (subject === 'dns' ? [found] : []));
  return { simulated, tools, asked, resolve, find };
}

it('the server of a domain in use is queried; programs that bypass the resolver are a note', async () => {
  const { asked, find } = await start();
  expect(await find()).toEqual([
    expect.stringMatching(/do not resolve domains of a network$/),
    expect.stringMatching(
      /^waits to be resolved through the tunnel: the daemon does not serve names yet: systemctl enable --now cpn/,
    ),
    `cpn0 sends its queries to ${server}`,
    'does not answer',
  ]);
  expect(asked).toEqual([`${server} corp.example from 10.77.0.1`]);
});

it('a network joined before has the domain; one joined later does not', async () => {
  const { tools, asked, resolve, find } = await start();
  resolve([{ domain: 'corp.example', link: 'cpn1' }]);
  const second = joinedTo({ ...map, id: 8, name: 'lab' }, { interface: 'cpn1', options: { ...options, dns: false } });
  await tools.store.write({ ...second, createdAt: '2023-10-01T00:00:00.000Z' });
  expect(await find()).toContain('is that of network lab on cpn1, which has it too and was joined first');
  expect(asked).toEqual([]);
  await tools.store.write({ ...second, createdAt: '2026-10-01T00:00:00.000Z' });
  expect(await find()).toContain(`cpn0 sends its queries to ${server}`);
});

const refused = 'is not resolved through the tunnel: this host takes none (--no-dns)';
it.each<[string, Partial<Joined>, readonly string[]]>([
  ['that is down has no finding', { enabled: false }, []],
  ['with --no-dns is a note', { options: { ...options, dns: false } }, [refused, refused]],
])('a domain of a network %s', async (_, changes, findings) => {
  const { simulated, tools, asked, find } = await start();
  await tools.store.write({ ...(await simulated.state()), ...changes });
  expect(await find()).toEqual([expect.stringMatching(/programs bypass systemd-resolved$/), ...findings]);
  expect(asked).toEqual([]);
});

it('there is no finding of systemd-resolved without it', async () => {
  const { tools } = await startExaminedHost(undefined, {}, { resolvedMode: async () => null });
  expect((await examine(tools)).filter(({ subject }) => subject === 'dns')).toMatchObject([
    { verdict: 'note', checked: 'the domain office.cpn.internal of network office' },
  ]);
});
