import { networkInterfaces } from 'node:os';
import { parseSecretKey } from '../../core/crypto/keys.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import { CommandFailed } from '../../core/errors/index.ts';
import type { Actual, Device, Link } from '../../core/host-state/actual.ts';
import { routeProtocol } from '../../core/host-state/marks.ts';
import { onLinkRange } from '../../core/net/cidr.ts';
import { parseLinkName } from '../../core/net/link-name.ts';
import type { ObserveOptions } from '../host.ts';
import { readHosts } from '../hosts-file.ts';
import { parseOutput } from '../process/command-error.ts';
import type { Run } from '../process/run.ts';
import { parseDump } from '../wireguard/dump.ts';
import { readMacResolver } from './mac-resolver.ts';
import { routesOf, type TunnelFile, type TunnelFiles } from './tunnel-files.ts';
import type { TunnelManager } from './tunnel-manager.ts';
import { addressesOf, type Interfaces, readUnderlay } from './underlay.ts';

export interface PortableContext {
  readonly run: Run;
  readonly manager: TunnelManager;
  readonly files: TunnelFiles;
  /** Where macOS has DNS servers for single domains; absent on other platforms. */
  readonly resolverFolder?: string;
}

/** A tunnel according to `wg`, the kernel and its file. */
export interface TunnelObservation {
  /** The kernel's name. Null if no interface exists. */
  readonly kernelName: string | null;
  readonly device: Device | null;
  readonly privateKey: Secret | null;
  /** Null without a file, or if its private key differs from that of the interface. */
  readonly file: TunnelFile | null;
  readonly interfaces: Interfaces;
}

/** Observes one tunnel. Runs one process if the interface exists. */
export async function observeTunnel(
  { run, manager, files }: PortableContext,
  link: string,
): Promise<TunnelObservation> {
  const interfaces = networkInterfaces();
  const written = await files.read(parseLinkName(link));
  const kernelName = await manager.kernelName(link, written);
  const text = kernelName === null ? null : await dump(run, kernelName);
  if (text === null) {
    return {
      kernelName: kernelName !== null && kernelName in interfaces ? kernelName : null,
      device: null,
      privateKey: null,
      file: null,
      interfaces,
    };
  }
  const privateKey = parseOutput('wg', text, readPrivateKey);
  const hasSameKey = written !== null && written.config.privateKey.reveal() === privateKey?.reveal();
  return {
    kernelName,
    device: parseOutput('wg', text, parseDump),
    privateKey,
    file: hasSameKey ? written : null,
    interfaces,
  };
}

/**
 * Observes a host: the device with `wg`, addresses from the kernel, and the mark, the MTU and the
 * routes from the file of the tunnel. It therefore detects no drift of the MTU and of routes. These
 * drivers have no packet rules, policy rules and sysctls.
 */
export async function observe(context: PortableContext, { link, hosts, dns = false }: ObserveOptions): Promise<Actual> {
  const observed = await observeTunnel(context, link);
  const { device, file } = observed;
  const found = findLink(link, observed);
  return {
    link: found,
    device,
    routes:
      file === null
        ? []
        : routesOf(file).map((prefix) => ({ prefix, table: 'main', protocol: routeProtocol, metric: null })),
    onLink: found?.addresses.flatMap((address) => onLinkRange(address) ?? []) ?? [],
    rules: [],
    isPlain: true,
    firewall: null,
    sysctls: {},
    hosts: hosts ? await readHosts(link) : null,
    ...(dns && context.resolverFolder && (await readMacResolver(context.resolverFolder, link, found))),
    underlay: readUnderlay(
      observed.kernelName,
      observed.interfaces,
      await findOtherTunnels(context, link, observed.interfaces),
    ),
  };
}

function findLink(name: string, { kernelName, file, interfaces }: TunnelObservation): Link | null {
  if (kernelName === null) return null;
  const addresses = addressesOf(interfaces, kernelName);
  return { name, mtu: file?.config.mtu ?? 0, up: addresses.length > 0, alias: file?.alias ?? null, addresses };
}

/** The files of our other tunnels whose interfaces exist, by the kernel's interface names. */
async function findOtherTunnels(
  { files, manager }: PortableContext,
  link: string,
  interfaces: Interfaces,
): Promise<Map<string, TunnelFile>> {
  const others = new Map<string, TunnelFile>();
  for (const other of await files.list()) {
    if (other === link) continue;
    const file = await files.read(other);
    const kernelName = await manager.kernelName(other, file);
    if (file !== null && kernelName !== null && kernelName in interfaces) others.set(kernelName, file);
  }
  return others;
}

function readPrivateKey(text: string): Secret | null {
  const [key = ''] = text.split('\t', 1);
  return key === '(none)' ? null : parseSecretKey(key);
}

/** Null without such a WireGuard interface. Its error text differs between platforms. */
async function dump(run: Run, kernelName: string): Promise<string | null> {
  try {
    return await run('wg', ['show', kernelName, 'dump']);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    const links = await run('wg', ['show', 'interfaces']);
    if (!links.split(/\s+/).includes(kernelName)) return null;
    throw error;
  }
}
