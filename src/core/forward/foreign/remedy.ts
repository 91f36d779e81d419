import type { Prefix } from '../../net/cidr.ts';
import type { FilterChain, FilterTable } from './chain.ts';
import type { ForwardPath } from './path.ts';

/** A program that creates tables of packet rules, identified by the names in them. */
export type FirewallProgram = 'docker' | 'firewalld' | typeof panicMode | 'ufw' | 'iptables';

export const panicMode = 'firewalld in panic mode';
/** A rule in its table does not end panic mode: another chain drops leaving packets. */
export const endPanicMode = 'firewall-cmd --panic-off';

/** firewalld's table in panic mode and, with other chains, during a reload (core/nftables.py). */
const firewalldTable = 'firewalld_policy_drop';

/** True of a table with which firewalld closes the host while it reloads. */
export function isReloading({ name, chains }: FilterTable): boolean {
  return name === firewalldTable && !chains.has('raw_prerouting');
}

/** True of the table with which firewalld closes the host in panic mode. */
export function isPanicking(table: FilterTable): boolean {
  return table.name === firewalldTable && !isReloading(table);
}

export function iptablesOf({ isLegacy }: FilterTable): string {
  return isLegacy ? 'iptables-legacy' : 'iptables';
}

/** The table of Docker's own nftables backend (Docker 29), which no other program may change. */
const dockerTable = 'docker-bridges';

export function isDocker({ name, chains }: FilterTable): boolean {
  return name === dockerTable || chains.has('DOCKER-USER') || chains.has('DOCKER');
}

/** True of a chain that only Docker fills. An operator's rules are in DOCKER-USER. */
export function isDockerChain(table: FilterTable, { name, hook }: FilterChain): boolean {
  if (!isDocker(table) || hook === 'prerouting') return false;
  return table.name === dockerTable || (/^DOCKER(-|$)/.test(name) && name !== 'DOCKER-USER');
}

/**
 * The likely creator of a table, by the chain that drops. `closesBridge`: Docker is present, and
 * the packets were dropped because of their arrival interface.
 */
export function nameProgram(table: FilterTable, culprit: FilterChain, closesBridge = false): FirewallProgram | null {
  const { family, name, chains } = table;
  if (isPanicking(table)) return panicMode;
  if (name === 'firewalld') return 'firewalld';
  if (family !== 'ip') return null;
  if (name === dockerTable) return 'docker';
  if (name === 'raw' && culprit.name === 'PREROUTING') return closesBridge ? 'docker' : 'iptables';
  if (name === 'mangle') return /^(PREROUTING|FORWARD|POSTROUTING)$/.test(culprit.name) ? 'iptables' : null;
  if (name !== 'filter') return null;
  if (culprit.name.startsWith('ufw-')) return 'ufw';
  // DOCKER-USER comes first in the chain, so that packets that it accepts never reach the others.
  if (chains.has('DOCKER-USER')) return 'docker';
  if (chains.has('ufw-user-forward')) return 'ufw';
  return chains.has('FORWARD') ? 'iptables' : null;
}

interface DropPlace {
  readonly table: FilterTable;
  /** The chain at the hook. */
  readonly base: FilterChain;
  /** The interface of the tunnel. */
  readonly link: string;
  readonly paths: readonly ForwardPath[];
}

/** Returns what to type. This host's own table still refuses what is not advertised. */
export function adviseRemedy(author: FirewallProgram | null, place: DropPlace): string {
  const { table, base, link } = place;
  const { family, name } = table;
  const iptables = iptablesOf(table);
  switch (author) {
    case 'docker':
      if (name === dockerTable) return `${allowDirect}; docker's own tables are not to be changed`;
      if (base.hook === 'prerouting') {
        return `"${insertAll(place, 'iptables')}" lets them through until this host starts again, ${allowDirect} for good`;
      }
      return `"${iptables} -I DOCKER-USER -i ${link} -j ACCEPT && ${iptables} -I DOCKER-USER -o ${link} -j ACCEPT" lets them through`;
    case 'firewalld':
      return `"firewall-cmd --permanent --zone=trusted --add-interface=${link} && firewall-cmd --reload" lets them through`;
    case panicMode:
      return `"${endPanicMode}" ends it`;
    case 'ufw':
      return `"ufw route allow in on ${link}" lets them through`;
    case 'iptables':
      if (base.hook !== 'forward' || name !== 'filter') return `"${insertAll(place, 'iptables')}" lets them through`;
      return `"${iptables} -I FORWARD -i ${link} -j ACCEPT && ${iptables} -I FORWARD -o ${link} -j ACCEPT" lets them through`;
    case null: {
      // A name that a shell would interpret must not be typed.
      if (![name, base.name].every((each) => /^[a-zA-Z_][\w.-]*$/.test(each))) return `let ${link} through there`;
      if (base.hook !== 'forward') return `"${insertAll(place, 'nft')}" lets them through`;
      const insert = (field: string) => `nft insert rule ${family} ${name} ${base.name} ${field} ${link} accept`;
      return `"${insert('iifname')} && ${insert('oifname')}" lets them through`;
    }
  }
}

/**
 * https://docs.docker.com/reference/cli/dockerd/: the option is for published ports; DOCKER-USER
 * decides on the others.
 */
const allowDirect = '"allow-direct-routing": true in /etc/docker/daemon.json (Docker 28.2)';

/** Returns commands that accept the packets at the head of the chain whose rule drops them. */
function insertAll(place: DropPlace, tool: 'iptables' | 'nft'): string {
  return [...new Set(place.paths.map((path) => insertOne(path, place, tool)))].join(' && ');
}

function insertOne(path: ForwardPath, { table, base }: DropPlace, tool: 'iptables' | 'nft'): string {
  const { iif, oif, from, to, state } = path;
  const isIncoming = base.hook === 'prerouting';
  const end = isIncoming && state === 'established' ? null : to;
  const source = isIncoming && state === 'established' ? from : null;
  const match = {
    iif: base.hook === 'postrouting' ? null : iif,
    oif: isIncoming ? null : oif,
    source,
    end,
  };
  return tool === 'nft'
    ? `nft insert rule ${table.family} ${table.name} ${base.name} ${nftMatch(match)} accept`
    : `${iptablesOf(table)} -t ${table.name} -I ${base.name} ${iptablesMatch(match)} -j ACCEPT`;
}

interface Match {
  readonly iif: string | null;
  readonly oif: string | null;
  readonly source: Prefix | null;
  readonly end: Prefix | null;
}

function nftMatch({ iif, oif, source, end }: Match): string {
  return joined([
    iif && `iifname ${iif}`,
    oif && `oifname ${oif}`,
    source && `ip saddr ${source}`,
    end && `ip daddr ${end}`,
  ]);
}

function iptablesMatch({ iif, oif, source, end }: Match): string {
  return joined([iif && `-i ${iif}`, oif && `-o ${oif}`, source && `-s ${source}`, end && `-d ${end}`]);
}

function joined(parts: readonly (string | null)[]): string {
  return parts.filter((part) => part !== null && part !== '').join(' ');
}
