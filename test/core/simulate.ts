import { keyPairOf } from '../../src/core/crypto/keys.ts';
import { firewallMarks } from '../../src/core/forward/own-table.ts';
import type { Actual, ActualPeer, Link, Route } from '../../src/core/host-state/actual.ts';
import { routeProtocol } from '../../src/core/host-state/marks.ts';
import { formatRule, sameRule } from '../../src/core/host-state/policy-rule.ts';
import { allForwardingKey, forwardingKey, sourceFilterKey } from '../../src/core/host-state/sysctl-keys.ts';
import { readDropIns } from '../../src/core/names/drop-in.ts';
import { familyOf, type InterfaceAddress, onLinkRange, type Prefix } from '../../src/core/net/cidr.ts';
import { settingsOf } from '../../src/core/reconcile/plan-dns.ts';
import type { DnsFiles, LinkCommand, Step } from '../../src/core/reconcile/step.ts';
import { usualMetric } from '../../src/core/routing/place-route.ts';
import type { DesiredPeer } from '../../src/core/wg-quick/parse.ts';

/** A strict stand-in for a host: does what the kernel would do, and throws where the kernel would refuse. */
export function simulate(actual: Actual, steps: readonly Step[]): Actual {
  return steps.reduce(applyStep, actual);
}

function applyStep(actual: Actual, step: Step): Actual {
  switch (step.do) {
    case 'create-link':
      if (actual.link !== null) throw new Error(`${step.link} exists`);
      return {
        ...actual,
        link: { name: step.link, mtu: 1420, up: false, alias: null, addresses: [] },
        device: { publicKey: null, listenPort: 40000, fwmark: null, peers: [] },
        sysctls: { ...actual.sysctls, [sourceFilterKey(step.link)]: '0', [forwardingKey(step.link)]: '0' },
      };
    case 'delete-link':
      if (actual.link === null) throw new Error('no such device');
      return { ...actual, link: null, device: null, routes: [], onLink: [], sysctls: withoutLink(actual.sysctls) };
    case 'configure-device': {
      if (actual.device === null) throw new Error('no such device');
      const peers = new Map(actual.device.peers.map((peer) => [peer.publicKey, peer]));
      for (const peer of step.peers) {
        for (const [key, other] of peers) peers.set(key, without(other, peer.allowedIps));
        peers.set(peer.publicKey, setPeer(peer, peers.get(peer.publicKey)));
      }
      return {
        ...actual,
        device: {
          publicKey: step.privateKey ? keyPairOf(step.privateKey).publicKey : actual.device.publicKey,
          // The kernel's choice.
          listenPort: step.listenPort === 0 ? 40001 : (step.listenPort ?? actual.device.listenPort),
          fwmark: step.fwmark === undefined ? actual.device.fwmark : step.fwmark,
          peers: [...peers.values()],
        },
      };
    }
    case 'remove-peers': {
      if (actual.device === null) throw new Error('no such device');
      const peers = actual.device.peers.filter((peer) => !step.publicKeys.includes(peer.publicKey));
      return { ...actual, device: { ...actual.device, peers } };
    }
    case 'renew-peers': {
      if (actual.device === null) throw new Error('no such device');
      const renewed = new Map(step.peers.map((peer) => [peer.publicKey, setPeer(peer, undefined)]));
      const peers = actual.device.peers.filter((peer) => !renewed.has(peer.publicKey));
      return { ...actual, device: { ...actual.device, peers: [...peers, ...renewed.values()] } };
    }
    case 'configure-link':
      return step.commands.reduce(applyCommand, actual);
    case 'set-firewall':
      return { ...actual, firewall: firewallMarks(step.firewall) };
    case 'remove-firewall':
      return { ...actual, firewall: null };
    case 'set-sysctl':
      if (isOfLink(step.key) && !(step.key in actual.sysctls)) throw new Error(`${step.key}: no such file`);
      if (step.key === allForwardingKey) return { ...actual, sysctls: forwardAll(actual.sysctls, step.value) };
      return { ...actual, sysctls: { ...actual.sysctls, [step.key]: step.value } };
    case 'open-port':
    case 'close-port':
      return actual;
    case 'set-hosts':
      return { ...actual, hosts: { block: step.block, trouble: null } };
    case 'remove-hosts':
      return { ...actual, hosts: { block: null, trouble: null } };
    case 'set-dns':
      if (actual.link?.up !== true) throw new Error('the resolver has no such link');
      if (step.files) return withFiles(actual, step.files.texts);
      return {
        ...actual,
        dns: {
          others: [],
          isServing: false,
          ...actual.dns,
          program: 'systemd-resolved',
          own: settingsOf(step.dns),
        },
      };
    case 'revert-dns':
      if (step.files) return withFiles(actual, step.files.texts);
      return {
        ...actual,
        dns: { others: [], isServing: false, ...actual.dns, program: 'systemd-resolved', own: null },
      };
  }
}

function withFiles(actual: Actual, texts: DnsFiles['texts']): Actual {
  const entries = Object.entries({ ...actual.dnsFiles, ...texts });
  const dnsFiles = Object.fromEntries(entries.flatMap(([path, text]) => (text === null ? [] : [[path, text]])));
  if (!actual.dns || actual.dns.program === 'systemd-resolved') return { ...actual, dnsFiles };
  return { ...actual, dnsFiles, dns: { ...actual.dns, own: readDropIns(dnsFiles) } };
}

function withoutLink(sysctls: Actual['sysctls']): Actual['sysctls'] {
  return Object.fromEntries(Object.entries(sysctls).filter(([key]) => !isOfLink(key)));
}

function isOfLink(key: string): boolean {
  return /^net\.ipv4\.conf\.cpn/.test(key);
}

/** What is written for all is written for each. */
function forwardAll(sysctls: Actual['sysctls'], value: string): Actual['sysctls'] {
  const isForwarding = (key: string) => key === allForwardingKey || /^net\.ipv4\.conf\..*\.forwarding$/.test(key);
  return Object.fromEntries(Object.entries(sysctls).map(([key, old]) => [key, isForwarding(key) ? value : old]));
}

/** An allowed IP belongs to one peer: to give it to another takes it away. */
function without(peer: ActualPeer, prefixes: readonly Prefix[]): ActualPeer {
  return { ...peer, allowedIps: peer.allowedIps.filter((each) => !prefixes.includes(each)) };
}

function setPeer(peer: DesiredPeer, before: ActualPeer | undefined): ActualPeer {
  return {
    latestHandshake: null,
    rxBytes: 0,
    txBytes: 0,
    ...before,
    publicKey: peer.publicKey,
    presharedKey: peer.presharedKey,
    endpoint: peer.endpoint ?? before?.endpoint ?? null,
    allowedIps: peer.allowedIps,
    keepalive: peer.keepalive,
  };
}

function applyCommand(actual: Actual, command: LinkCommand): Actual {
  if ('rule' in command) return applyRule(actual, command);
  const { link } = actual;
  if (link === null) throw new Error('no such device');
  const withLink = (changes: Partial<Link>): Actual => ({ ...actual, link: { ...link, ...changes } });
  if ('set' in command) {
    if (command.set === 'mtu') return withLink({ mtu: command.value });
    if (command.set === 'alias') return withLink({ alias: command.value });
    return link.addresses.reduce(withRange, withLink({ up: true }));
  }
  if ('add' in command && command.add === 'address') {
    if (link.addresses.some((each) => same(each, command.address))) throw new Error('File exists');
    const added = withLink({ addresses: [...link.addresses, command.address] });
    return link.up ? withRange(added, command.address) : added;
  }
  if ('remove' in command && command.remove === 'address') return removeAddress(actual, link, command.address);
  if ('add' in command && command.add === 'throw') {
    const { prefix, table } = command;
    const present = actual.throwRoutes ?? [];
    if (present.some((each) => each.prefix === prefix && each.table === table)) throw new Error('File exists');
    return { ...actual, throwRoutes: [...present, { prefix, table }] };
  }
  if ('remove' in command && command.remove === 'throw') {
    const { prefix, table } = command;
    const left = (actual.throwRoutes ?? []).filter((each) => each.prefix !== prefix || each.table !== table);
    if (left.length === (actual.throwRoutes ?? []).length) throw new Error('No such process');
    return { ...actual, throwRoutes: left };
  }
  if ('add' in command) {
    if (!link.up) throw new Error('Device for nexthop is not up');
    const { prefix, table = 'main', metric = usualMetric(prefix) } = command;
    const isThere = (route: Route) =>
      route.prefix === prefix && route.table === table && route.metric === metric && route.tos === undefined;
    if (command.replaces === undefined && actual.routes.some(isThere)) throw new Error('File exists');
    const routes = actual.routes.filter((route) => !isThere(route));
    if (command.source) return restoreRange({ ...actual, routes }, link, command);
    return { ...actual, routes: [...routes, { prefix, table, protocol: routeProtocol, metric }] };
  }
  const routes = actual.routes.filter(
    (route) =>
      route.prefix !== command.prefix ||
      route.protocol !== command.protocol ||
      route.table !== (command.table ?? 'main') ||
      route.metric !== (command.metric ?? usualMetric(command.prefix)) ||
      route.tos !== command.tos,
  );
  if (routes.length === actual.routes.length) throw new Error('No such process');
  return { ...actual, routes };
}

/** With an address comes the route to its range, once the interface is up. */
function withRange(actual: Actual, address: InterfaceAddress): Actual {
  const range = onLinkRange(address);
  if (range === null || actual.onLink.includes(range)) return actual;
  return { ...actual, onLink: [...actual.onLink, range] };
}

function restoreRange(actual: Actual, { addresses }: Link, { prefix, source }: AddRoute): Actual {
  if (!addresses.some(({ address }) => address === source)) throw new Error('Invalid argument');
  if (actual.onLink.includes(prefix)) throw new Error('File exists');
  return { ...actual, onLink: [...actual.onLink, prefix] };
}

type AddRoute = Extract<LinkCommand, { add: 'route' }>;

/** Rules are the host's, and need no interface. What a removal does not name may be anything: the first that fits goes. */
function applyRule(actual: Actual, command: Extract<LinkCommand, { rule: unknown }>): Actual {
  const { rule } = command;
  if ('add' in command) {
    if (actual.rules.some((each) => sameRule(each, rule))) throw new Error('File exists');
    if (rule.goto !== null && rule.goto <= rule.priority) throw new Error('Backward goto not supported');
    return { ...actual, rules: [...actual.rules, rule] };
  }
  const found = actual.rules.find(
    (each) =>
      each.priority === rule.priority && each.protocol === rule.protocol && formatRule(each) === formatRule(rule),
  );
  if (found === undefined) throw new Error('No such file or directory');
  return { ...actual, rules: actual.rules.filter((each) => each !== found) };
}

/** With its last IPv4 address an interface loses its IPv4 routes. */
function removeAddress(actual: Actual, link: Link, address: InterfaceAddress): Actual {
  const addresses = link.addresses.filter((each) => !same(each, address));
  if (addresses.length === link.addresses.length) throw new Error('Cannot assign requested address');
  const routes = addresses.length > 0 ? actual.routes : actual.routes.filter((route) => familyOf(route.prefix) === 6);
  const ranges = new Set(addresses.map(onLinkRange));
  const onLink = actual.onLink.filter((range) => ranges.has(range));
  return { ...actual, link: { ...link, addresses }, routes, onLink };
}

const same = (one: InterfaceAddress, other: InterfaceAddress) =>
  one.address === other.address && one.length === other.length;
