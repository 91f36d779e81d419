import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, startOffice, status } from './office.ts';
import { call, listen } from './tcp.ts';

/**
 * A connector that serves a network of containers on its own host, by the rules of Docker 28.2. There is no engine: a container is a host
 * behind the bridge. What `cpn status` prints is typed as it is.
 */
let office: Office;
let connector: Host;
let member: Host;
let container: Host;

const [containers, published, hidden] = ['172.17.0.0/16', '172.17.0.2', '172.17.0.3'];

/**
 * What dockerd writes with iptables for two containers, of which the first publishes a port (moby,
 * daemon/libnetwork/drivers/bridge/internal/iptabler).
 */
const docker = `*nat
:PREROUTING ACCEPT
:OUTPUT ACCEPT
:POSTROUTING ACCEPT
:DOCKER -
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:8080
COMMIT
*raw
:PREROUTING ACCEPT
-A PREROUTING -d 172.17.0.2/32 ! -i docker0 -j DROP
-A PREROUTING -d 172.17.0.3/32 ! -i docker0 -j DROP
COMMIT
*filter
:FORWARD DROP
:DOCKER -
:DOCKER-BRIDGE -
:DOCKER-CT -
:DOCKER-FORWARD -
:DOCKER-USER -
-A FORWARD -j DOCKER-USER
-A FORWARD -j DOCKER-FORWARD
-A DOCKER -d 172.17.0.2/32 ! -i docker0 -o docker0 -p tcp -m tcp --dport 8080 -j ACCEPT
-A DOCKER ! -i docker0 -o docker0 -j DROP
-A DOCKER-BRIDGE -o docker0 -j DOCKER
-A DOCKER-CT -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A DOCKER-FORWARD -j DOCKER-CT
-A DOCKER-FORWARD -j DOCKER-BRIDGE
-A DOCKER-FORWARD -i docker0 -j ACCEPT
COMMIT
`;

beforeAll(async () => {
  office = await startOffice();
  const { lab, controlPlane } = office;
  await controlPlane.cpn(['network', 'update', 'office', '--route', containers, '--yes']);
  connector = await lab.addHost('connector', { address: '203.0.113.11/24' });
  member = await lab.addHost('member', { address: '203.0.113.12/24' });
  const segment = await lab.addSegment('containers');
  const address = [`${published}/16`, `${hidden}/16`];
  container = await lab.addHost('container', { address, gateway: '172.17.0.1', on: segment });
  const card = await connector.plug(segment, { address: '172.17.0.9/16' });
  await sh(
    connector,
    `ip address flush dev ${card.name}; ip link add docker0 type bridge; ip link set ${card.name} master docker0
     ip address add 172.17.0.1/16 dev docker0; ip link set docker0 up; echo 1 >/proc/sys/net/ipv4/ip_forward`,
  );
  await listen(container);
  await join(office, connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  await join(office, member, '--endpoint', '203.0.113.12:51820');
  await connector.cpn(['reconcile']);
  expect(await member.ping(hidden, patiently)).toMatchObject({ received: 1 });
}, 90_000);

afterAll(() => office?.lab.stop());

const sh = async (host: Host, script: string) => (await host.exec(['sh', '-ec', script])).stdout.trim();
const reaches = async (address: string) => (await member.ping(address)).received === 1;
const warnings = async (): Promise<string[]> => (await status(connector)).warnings ?? [];
/** The commands that a warning has in quotation marks. */
const commandsIn = (text: string) =>
  [...text.matchAll(/"((?:iptables|nft) [^"]+)"/g)].map(([, command = '']) => command);

async function explain(address: string) {
  const { stdout, exitCode } = await connector.cpn(['explain', address, '--json'], { allowFailure: true });
  return { exitCode, text: stdout };
}

describe('a connector on the host of Docker 28', () => {
  it('is degraded while containers are closed, and explains each', async () => {
    await connector.exec(['iptables-restore'], { input: docker });
    expect(await reaches(hidden)).toBe(false);
    expect(await status(connector)).toMatchObject({ state: 'degraded' });
    const { exitCode, text } = await explain(hidden);
    expect([exitCode, text]).toEqual([3, expect.stringMatching(/nft table ip (raw|filter), probably made by docker/)]);
  });

  it('serves the port that a container publishes at its tunnel address', async () => {
    expect(await call(member, '10.77.0.1')).toBe('172.17.0.1');
  });

  it('reaches all containers once each command that status prints is typed', async () => {
    expect(await typeAll()).toContain(`iptables -t raw -I PREROUTING -i cpn0 -d ${containers} -j ACCEPT`);
    expect(await status(connector)).toMatchObject({ state: 'up' });
    expect([await reaches(published), await reaches(hidden)]).toEqual([true, true]);
    expect(await call(member, published)).toBeDefined();
    expect((await explain(hidden)).exitCode).toBe(0);
  });
});

/** Types what `cpn status` prints until it prints no command; returns what was typed. */
async function typeAll(): Promise<string[]> {
  const typed: string[] = [];
  for (let round = 0; round < 4; round += 1) {
    const commands = (await warnings()).flatMap(commandsIn);
    if (commands.length === 0) break;
    for (const command of commands) await sh(connector, command);
    typed.push(...commands);
  }
  return typed;
}

describe('packets get through once the command that status prints is typed, where rules drop them', () => {
  const nft = (chain: string) => `nft -f - <<'end'\ntable inet mine { chain c { ${chain} }; }\nend`;

  it.each([
    ['in raw', 'iptables -t raw -A PREROUTING -i cpn0 -j DROP'],
    ['in mangle, before routing', 'iptables -t mangle -A PREROUTING -d 172.17.0.0/16 ! -i docker0 -j DROP'],
    ['in mangle, before routing, for answers', 'iptables -t mangle -A PREROUTING -i docker0 -j DROP'],
    ['in mangle, while forwarded', 'iptables -t mangle -A FORWARD -i cpn0 -j DROP'],
    ['in mangle, after routing', 'iptables -t mangle -A POSTROUTING -o docker0 -j DROP'],
    ['in filter, by a policy', 'iptables -P FORWARD DROP'],
    ['before routing, in a table of nft', nft('type filter hook prerouting priority -300; iifname cpn0 drop;')],
    [
      'after routing, by a policy of nft',
      nft('type filter hook postrouting priority 0; policy drop; oifname eth0 accept;'),
    ],
    ['while forwarded, in a table of nft', nft('type filter hook forward priority 0; oifname docker0 drop;')],
  ])('%s', async (_, rules) => {
    for (const table of ['raw', 'mangle', 'filter', 'nat'])
      await sh(connector, `iptables -t ${table} -F; iptables -t ${table} -X`);
    await sh(connector, 'iptables -P FORWARD ACCEPT; nft delete table inet mine 2>/dev/null || true');
    expect(await reaches(hidden)).toBe(true);
    await sh(connector, rules);
    expect(await reaches(hidden)).toBe(false);
    expect(await status(connector)).toMatchObject({ state: 'degraded' });
    expect(await typeAll()).not.toEqual([]);
    expect([await reaches(hidden), (await status(connector)).state]).toEqual([true, 'up']);
  });
});
