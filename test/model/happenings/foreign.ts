/** What other programs do to the packet rules and routes of a host. */
import { loadRoutes, manyRoutes } from '../../lab/routing-table.ts';
import { connectors, type Member, type Model, members } from '../model.ts';
import type { Site } from '../site.ts';
import { happening } from './happening.ts';

/** Packet rules as ufw makes them: nothing comes in but answers, pings, ssh and WireGuard. */
const strictInput = `table inet ufwlike { chain input { type filter hook input priority 0; policy drop;
ct state established,related accept; iif lo accept; meta l4proto icmp accept; udp dport 51820-51829 accept; tcp dport 22 accept; }; }`;

/**
 * What docker does to a host: forwarding for all, a bridge of its own that is masqueraded, and a forward chain that drops the rest. Its
 * remedy for what others forward is there too, as `cpn doctor` names it: without it no connector works with docker.
 */
const dockerLike = `ip link show docker0 >/dev/null 2>&1 || { ip link add docker0 type bridge; ip address add 172.17.0.1/16 dev docker0; ip link set docker0 up; }
nft list table ip dockerlike >/dev/null 2>&1 || nft -f -
echo 1 >/proc/sys/net/ipv4/ip_forward`;
const dockerRules = `table ip dockerlike {
chain user { iifname "cpn0" accept; oifname "cpn0" accept; }
chain raw { type filter hook prerouting priority -300; ip daddr 172.17.0.2 iifname != "docker0" drop; }
chain forward { type filter hook forward priority 0; policy drop; jump user; ct state established,related accept; iifname "docker0" accept; }
chain postrouting { type nat hook postrouting priority 100; oifname != "docker0" ip saddr 172.17.0.0/16 masquerade; }
}`;

async function startDocker(site: Site, name: Member, model: Model): Promise<void> {
  model.dockers.add(name as 'edge-1');
  await site.sh(name, dockerLike, { input: dockerRules });
}

/** True where rules like those of ufw are loaded already. */
async function hasUfw(site: Site, name: Member): Promise<boolean> {
  const { exitCode } = await site.host(name).exec(['nft', 'list', 'table', 'inet', 'ufwlike'], { allowFailure: true });
  return exitCode === 0;
}

const loadUfw = (site: Site, name: Member) => site.host(name).exec(['nft', '-f', '-'], { input: strictInput });

/** True where a routing daemon's table is loaded already. */
async function hasTable(site: Site, name: Member): Promise<boolean> {
  return (
    await site.host(name).exec(['ip', 'route', 'get', 'fibmatch', '20.0.0.1'], { allowFailure: true })
  ).stdout.startsWith('20.0.0.0/24');
}

export const foreignHappenings = [
  happening({
    what: 'a routing daemon loads a large table, or withdraws it',
    to: members,
    async do({ site }, name) {
      const host = site.host(name);
      if (await hasTable(site, name)) await host.exec(['ip', 'route', 'flush', 'proto', 'bgp'], { timeoutMs: 60_000 });
      else await loadRoutes(host, manyRoutes);
    },
  }),
  happening({
    what: 'all packet rules are flushed',
    to: connectors,
    // With docker's chain gone its forwarding for all is open, which the program must not close.
    can: (model, name) => model.present.has(name) && !model.dockers.has(name),
    async do({ site }, name, model) {
      model.isLeakExcused = true;
      await site.sh(name, 'nft flush ruleset');
    },
  }),
  happening({
    what: 'rules like those of ufw, and without them again',
    to: members,
    async do({ site }, name) {
      if (await hasUfw(site, name)) await site.sh(name, 'nft delete table inet ufwlike');
      else await loadUfw(site, name);
    },
  }),
  happening({
    what: 'docker starts',
    to: connectors,
    do: ({ site }, name, model) => startDocker(site, name, model),
  }),
  happening({
    what: 'docker starts while rules like those of ufw exist',
    to: connectors,
    async do({ site }, name, model) {
      if (!(await hasUfw(site, name))) await loadUfw(site, name);
      await startDocker(site, name, model);
    },
  }),
];
