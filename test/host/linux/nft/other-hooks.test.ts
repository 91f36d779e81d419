import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { describeDrop, describeInbound, describeRemedy } from '../../../../src/core/forward/foreign/describe-drop.ts';
import { findForwardDrops } from '../../../../src/core/forward/foreign/find-drops.ts';
import { findInboundDrop } from '../../../../src/core/forward/foreign/find-inbound-drop.ts';
import type { InboundPath } from '../../../../src/core/forward/foreign/inbound-path.ts';
import type { ForwardPath } from '../../../../src/core/forward/foreign/path.ts';
import { parseFilterTables } from '../../../../src/host/linux/nft/filter-tables.ts';
import { prefix } from '../../../core/samples.ts';

/**
 * What `nft --json list ruleset` (nftables 1.0.6) printed in a namespace: the rules that Docker 28.2 writes with iptables for two
 * containers, one of which publishes a port, as they are, after the remedy for the `filter` table, and after that for the `raw` table
 * too; and those of the nftables backend of Docker 29.
 */
const recorded = async (name: string) =>
  parseFilterTables(await readFile(join(import.meta.dirname, 'rulesets', `${name}.ruleset`), 'utf8'));

const network = prefix('10.77.0.0/24');

/** From the tunnel to what is behind a bridge, and the answers. */
const ways = (to: string, lan = 'docker0'): ForwardPath[] => [
  { iif: 'cpn0', oif: lan, from: network, to: prefix(to), state: 'new' },
  { iif: lan, oif: 'cpn0', from: prefix(to), to: network, state: 'established' },
];
const describeDrops = async (name: string, to: string, lan?: string) =>
  findForwardDrops(await recorded(name), 'cpn0', ways(to, lan)).map((drop) => `${describeDrop(drop)}; ${drop.remedy}`);

const inRaw =
  '"iptables -t raw -I PREROUTING -i cpn0 -d 172.17.0.0/16 -j ACCEPT" lets them through until this host starts again, "allow-direct-routing": true in /etc/docker/daemon.json (Docker 28.2) for good';

describe('docker 28', () => {
  it('drops in two tables what goes to a container without a published port', async () => {
    expect(await describeDrops('docker-28', '172.17.0.3/32')).toEqual([
      expect.stringMatching(/^packets to 172\.17\.0\.3\/32 .* nft table ip raw, probably made by docker/),
      expect.stringMatching(
        /^packets to 172\.17\.0\.3\/32 .* nft table ip filter, probably made by docker \(chain DOCKER drops them, but for published ports\); "iptables -I DOCKER-USER -i cpn0/,
      ),
    ]);
  });

  it('drops in the table raw what goes to some of a network of its own, and in the other what goes to no published port', async () => {
    const found = await describeDrops('docker-28', '172.17.0.0/16');
    expect(found).toHaveLength(2);
    expect(found).toContainEqual(
      expect.stringMatching(/^packets to 172\.17\.0\.0\/16 .* \(chain DOCKER drops them, but for published ports\)/),
    );
    expect(found).toContain(
      `packets to some of 172.17.0.0/16 (172.17.0.2, 172.17.0.3) do not get through nft table ip raw, probably made by docker (chain PREROUTING drops them); ${inRaw}`,
    );
  });

  it('drops in the table raw still after the remedy for the table filter', async () => {
    expect(await describeDrops('docker-28-user', '172.17.0.0/16')).toEqual([expect.stringContaining(inRaw)]);
  });

  it('surely drops what goes to one container, and nothing to an address without one', async () => {
    expect(await describeDrops('docker-28-user', '172.17.0.2/32')).toEqual([
      'packets to 172.17.0.2/32 do not get through nft table ip raw, probably made by docker (chain PREROUTING drops them); "iptables -t raw -I PREROUTING -i cpn0 -d 172.17.0.2/32 -j ACCEPT" lets them through until this host starts again, "allow-direct-routing": true in /etc/docker/daemon.json (Docker 28.2) for good',
    ]);
    expect(await describeDrops('docker-28-user', '172.17.0.9/32')).toEqual([]);
  });

  it('drops nothing after both remedies, and nothing of a LAN that is not its own', async () => {
    expect(await describeDrops('docker-28-let', '172.17.0.0/16')).toEqual([]);
    expect(await describeDrops('docker-28-let', '172.17.0.2/32')).toEqual([]);
    expect(await describeDrops('docker-28-user', '192.168.50.0/24', 'eth1')).toEqual([]);
    // A wide route through another interface: what it has of docker's addresses is not what it is for.
    expect(await describeDrops('docker-28-user', '172.16.0.0/12', 'eth1')).toEqual([]);
  });

  it('names the setting where the tables are of its nftables backend, which no other program may change', async () => {
    const drops = await describeDrops('docker-29-nftables', '172.17.0.0/16');
    expect(drops).toEqual(
      expect.arrayContaining([
        expect.stringMatching(
          /^packets to some of 172\.17\.0\.0\/16 \(172\.17\.0\.2\) do not get through nft table ip docker-bridges, probably made by docker \(chain raw-PREROUTING drops them\); "allow-direct-routing": true .* are not to be changed$/,
        ),
      ]),
    );
  });
});

/** Tables as nft prints them, with one chain and one rule. */
function tableWith(
  {
    family = 'ip',
    name = 'mine',
    chain = 'c',
    hook,
    prio,
    policy = 'accept',
  }: Record<string, unknown> & { hook: string; prio: number },
  ...rules: readonly unknown[][]
) {
  const place = { family, table: name };
  return parseFilterTables(
    JSON.stringify({
      nftables: [
        { table: { family, name } },
        { chain: { ...place, name: chain, type: 'filter', hook, prio, policy } },
        ...rules.map((expr) => ({ rule: { ...place, chain, expr } })),
      ],
    }),
  );
}

const match = (left: object, right: unknown, op = '==') => ({ match: { op, left, right } });
const to = (right: unknown) => match({ payload: { protocol: 'ip', field: 'daddr' } }, right);
const state = (right: unknown) => match({ ct: { key: 'state' } }, right, 'in');
const inter = (key: string, right: unknown) => match({ meta: { key } }, right);
const drop = { drop: null };
const lan = { prefix: { addr: '192.168.50.0', len: 24 } };

describe('a rule at another hook', () => {
  const closed = (tables: ReturnType<typeof tableWith>) =>
    findForwardDrops(tables, 'cpn0', ways('192.168.50.0/24', 'eth1')).map(({ paths, remedy }) => [
      paths.map((path) => path.state).join(),
      remedy,
    ]);

  it.each<[string, ReturnType<typeof tableWith>, string[][]]>([
    [
      'in mangle, before routing',
      tableWith({ name: 'mangle', chain: 'PREROUTING', hook: 'prerouting', prio: -150 }, [
        inter('iifname', 'cpn0'),
        drop,
      ]),
      [['new', '"iptables -t mangle -I PREROUTING -i cpn0 -d 192.168.50.0/24 -j ACCEPT" lets them through']],
    ],
    [
      'in raw, of another than docker',
      tableWith({ name: 'raw', chain: 'PREROUTING', hook: 'prerouting', prio: -300 }, [to(lan), drop]),
      [['new', '"iptables -t raw -I PREROUTING -i cpn0 -d 192.168.50.0/24 -j ACCEPT" lets them through']],
    ],
    [
      'in mangle, after routing',
      tableWith({ name: 'mangle', chain: 'POSTROUTING', hook: 'postrouting', prio: -150 }, [
        inter('oifname', 'eth1'),
        drop,
      ]),
      [['new', '"iptables -t mangle -I POSTROUTING -o eth1 -d 192.168.50.0/24 -j ACCEPT" lets them through']],
    ],
    [
      'after routing, as a policy',
      tableWith({ hook: 'postrouting', prio: 0, policy: 'drop' }, [inter('oifname', 'eth1'), { accept: null }]),
      [['established', '"nft insert rule ip mine c oifname cpn0 ip daddr 10.77.0.0/24 accept" lets them through']],
    ],
    [
      'before routing, for answers',
      tableWith({ hook: 'prerouting', prio: -150 }, [inter('iifname', 'eth1'), drop]),
      [['established', '"nft insert rule ip mine c iifname eth1 ip saddr 192.168.50.0/24 accept" lets them through']],
    ],
    // Packets of a masqueraded connection have the host's address before it is translated back.
    [
      'for the address of answers',
      tableWith({ hook: 'prerouting', prio: -150 }, [to({ prefix: { addr: '10.77.0.0', len: 24 } }), drop]),
      [],
    ],
    // The kernel has no connection there yet.
    [
      'for new connections, before they are found',
      tableWith({ hook: 'prerouting', prio: -300 }, [state(['new', 'established']), drop]),
      [],
    ],
    [
      'for new connections, once they are found',
      tableWith({ hook: 'prerouting', prio: -150 }, [state('new'), drop]),
      [['new', expect.anything() as never]],
    ],
    ['for what this host sends', tableWith({ hook: 'output', prio: 0, policy: 'drop' }), []],
  ])('%s', (_, tables, expected) => expect(closed(tables)).toEqual(expected));

  it('that closes the listen port is reported with what lets it in', () => {
    const inbound: InboundPath = {
      iif: 'eth0',
      oif: '',
      from: prefix('0.0.0.0/0'),
      to: prefix('203.0.113.5/32'),
      state: 'new',
      port: 51820,
    };
    const udp = match({ payload: { protocol: 'udp', field: 'dport' } }, 51820);
    const found = findInboundDrop(
      tableWith({ name: 'raw', chain: 'PREROUTING', hook: 'prerouting', prio: -300 }, [udp, drop]),
      [inbound],
    );
    expect(found && `${describeInbound(found)}; ${describeRemedy(found, 'cpn0')}`).toBe(
      'nft table ip raw drops UDP to port 51820 (chain PREROUTING): other hosts cannot start a session with this one; "iptables -t raw -I PREROUTING -p udp --dport 51820 -j ACCEPT" lets it in',
    );
  });
});
