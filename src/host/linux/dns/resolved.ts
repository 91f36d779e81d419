import { setTimeout as sleep } from 'node:timers/promises';
import { CommandFailed, CpnError, InvalidValue, MissingTool } from '../../../core/errors/index.ts';
import type { LinkDnsSettings, LinkResolver, Underlay } from '../../../core/host-state/actual.ts';
import { addressIn } from '../../../core/net/cidr.ts';
import { settingsOf } from '../../../core/reconcile/plan-dns.ts';
import type { SetDns } from '../../../core/reconcile/step.ts';
import { parseOutput } from '../../process/command-error.ts';
import type { Run } from '../../process/run.ts';
import { asList, isEntry } from '../ip/json-entry.ts';
import { parseSockets } from '../socket-table.ts';
import { readIfThere } from '../underlay.ts';

/**
 * systemd-resolved over D-Bus (org.freedesktop.resolve1(5)): `busctl` prints JSON, `resolvectl`
 * text for people.
 *
 * @module
 */

const service = 'org.freedesktop.resolve1';
/**
 * Without --auto-start=no, D-Bus would start a resolver that the administrator stopped. `busctl
 * get-property` ignores --timeout (252), and waits for 25 s.
 */
const busArgs = ['--json=short', '--auto-start=no', '--timeout=2', 'call', service];
const deadlineMs = 5_000;

/**
 * Reads the DNS settings of all interfaces. Null if systemd-resolved does not run in this network
 * namespace, or if its settings cannot be read: the tunnel works without names.
 *
 * @param names of interfaces, by index
 */
export async function readResolverSettings(
  run: Run,
  link: string,
  names: ReadonlyMap<number, string>,
  read: (path: string) => string = readIfThere,
): Promise<Omit<LinkResolver, 'isServing'> | null> {
  const [index] = [...names].find(([, name]) => name === link) ?? [];
  try {
    const ofManager = await readManager(run);
    if (await isElsewhere(ofManager, read)) return null;
    const ofLink = index === undefined ? null : await readObject(run, linkPath(index), 'Link');
    return composeSettings({ ofManager, ofLink, index, names });
  } catch (error) {
    if (error instanceof CpnError) return null;
    throw error;
  }
}

/**
 * Reads the properties of systemd-resolved itself. Before a change it shows that systemd-resolved
 * runs: `resolvectl` would start it.
 *
 * @throws CommandFailed, MissingTool
 */
export function readManager(run: Run): Promise<Properties> {
  return readObject(run, '/org/freedesktop/resolve1', 'Manager');
}

/** Milliseconds in which systemd-resolved opens its stub after it is on the bus. */
const stubWithinMs = 1_000;
const stubPauseMs = 50;

/**
 * True if systemd-resolved runs in another network namespace, as for a process of `ip netns exec`:
 * the index of an interface here is that of another interface there. Its stub has no socket here.
 */
export async function isElsewhere(
  { DNSStubListener: listener }: Properties,
  read: (path: string) => string,
): Promise<boolean> {
  // Without the stub, nothing shows it.
  if (listener === 'no') return false;
  for (let waited = 0; !hasStub(listener, read); waited += stubPauseMs) {
    if (waited >= stubWithinMs) return true;
    await sleep(stubPauseMs);
  }
  return false;
}

function hasStub(listener: unknown, read: (path: string) => string): boolean {
  const names = listener === 'tcp' ? ['tcp', 'tcp6'] : ['udp', 'udp6'];
  const tables = names.map((name) => read(`/proc/net/${name}`)).join('\n');
  return parseSockets(tables, new Set([stub.port])).some(
    // Another program that listens at all addresses displaces the stub.
    ({ local, localPort }) => localPort === stub.port && (local === null || local === stub.address),
  );
}

/** systemd-resolved.service(8) */
const stub = { address: '127.0.0.53', port: 53 };

async function readObject(run: Run, object: string, type: string): Promise<Properties> {
  const args = [...busArgs, object, 'org.freedesktop.DBus.Properties', 'GetAll', 's', `${service}.${type}`];
  return parseOutput('busctl', await run('busctl', args, { deadlineMs }), readProperties);
}

/** sd_bus_path_encode(3): the first character is escaped if it is a digit. */
function linkPath(index: number): string {
  const [first = '', ...rest] = String(index);
  return `/org/freedesktop/resolve1/link/_3${first}${rest.join('')}`;
}

type Properties = Readonly<Record<string, unknown>>;

/** The values of all properties of an object. */
function readProperties(text: string): Properties {
  const reply = parseJson(text);
  const [properties] = isEntry(reply) ? asList(reply.data) : [];
  if (!isEntry(properties))
    throw new InvalidValue('it', undefined, 'has no properties', 'cpn needs systemd 247 or newer');
  return Object.fromEntries(
    Object.entries(properties).map(([name, value]) => [name, isEntry(value) ? value.data : undefined]),
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

interface ReadSettings {
  readonly ofManager: Properties;
  readonly ofLink: Properties | null;
  readonly index: number | undefined;
  readonly names: ReadonlyMap<number, string>;
}

function composeSettings({ ofManager, ofLink, index, names }: ReadSettings): Omit<LinkResolver, 'isServing'> {
  const entries = asList(ofManager.Domains).map(asList);
  const own = {
    servers: asList(ofManager.DNSEx)
      .map(asList)
      .flatMap((entry) => (entry[0] === index ? formatServer(entry) : [])),
    domains: entries.flatMap(([at, domain, isRouting]) => (at === index ? `${isRouting ? '~' : ''}${domain}` : [])),
  };
  const others = entries.filter(([at]) => at !== index);
  const isSet = index !== undefined && own.servers.length + own.domains.length > 0;
  const settings: LinkDnsSettings = {
    ...own,
    isDefaultRoute: ofLink?.DefaultRoute === true,
    dnssec: String(ofLink?.DNSSEC),
    dnsOverTls: String(ofLink?.DNSOverTLS),
  };
  return {
    program: 'systemd-resolved',
    own: isSet ? settings : null,
    others: others.map(([at, domain, isRouting]) => ({
      domain: String(domain).toLowerCase(),
      ...(isRouting !== true && { isSearch: true as const }),
      link: at === 0 ? null : (names.get(Number(at)) ?? `number ${at}`),
    })),
  };
}

/** An entry of DNSEx: interface, family (2 is IPv4), address, port (0 is 53), name for TLS. */
function formatServer([, family, address, port, name]: readonly unknown[]): string {
  const octets = asList(address).map(Number);
  const text = family === 2 ? octets.join('.') : addressIn(6, BigInt(`0x${Buffer.from(octets).toString('hex')}`));
  return `${text}${port === 0 ? '' : `:${port}`}${name === '' ? '' : `#${name}`}`;
}

/**
 * Leaves out the servers of our interface: systemd-resolved lists the servers of all interfaces in
 * its resolv.conf. They are no resolvers of the underlay.
 */
export function withoutOwn<Found extends Pick<Underlay, 'resolvers'>>(
  found: Found,
  settings: Pick<LinkResolver, 'own'> | null,
): Found {
  const own = settings?.own?.servers ?? [];
  return own.length === 0 ? found : { ...found, resolvers: found.resolvers.filter((each) => !own.includes(each)) };
}

/**
 * Sets the servers last: before, the interface resolves nothing, and no other name may go to them.
 *
 * @throws CommandFailed, MissingTool, also if systemd-resolved does not run
 */
export async function setDns(run: Run, { link, dns }: SetDns): Promise<void> {
  const { servers, domains, dnssec, dnsOverTls } = settingsOf(dns);
  await readManager(run);
  await run('resolvectl', ['default-route', link, 'no']);
  await run('resolvectl', ['dnssec', link, dnssec]);
  await run('resolvectl', ['dnsovertls', link, dnsOverTls]);
  await run('resolvectl', ['domain', link, ...domains]);
  await run('resolvectl', ['dns', link, ...servers]);
}

/** Also succeeds without the interface or the resolver, whose settings are gone then. */
export async function revertDns(run: Run, link: string): Promise<void> {
  try {
    await readManager(run);
    await run('resolvectl', ['revert', link]);
  } catch (error) {
    if (!(error instanceof CommandFailed || error instanceof MissingTool)) throw error;
  }
}
