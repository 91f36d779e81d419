import { networkManagerFile, readDnsmasq } from './dnsmasq.ts';
import { readNameservers, type SettingsFiles, type StubSettings } from './settings.ts';
import { readUnbound } from './unbound.ts';

/** Reads the settings of dnsmasq(8) and unbound.conf(5). Null for other programs. */
export function readStubSettings(program: string, argv: readonly string[], files: SettingsFiles): StubSettings | null {
  if (program === 'dnsmasq') return readDnsmasq(argv, files);
  return program === 'unbound' ? readUnbound(argv, files) : null;
}

/**
 * Reads the default settings of dnsmasq, NetworkManager and unbound on Debian and Fedora, if the
 * listening program is not visible. A server that is listed without need only stays outside the
 * tunnel. A missing server would be routed into it.
 */
export function readUsualSettings(files: SettingsFiles): StubSettings {
  const dnsmasq = [
    'dnsmasq',
    '-r',
    '/run/dnsmasq/resolv.conf',
    '-7',
    '/etc/dnsmasq.d',
    '-7',
    '/etc/NetworkManager/dnsmasq.d',
  ];
  const forwarders = [
    ...readDnsmasq(dnsmasq, files).forwarders,
    ...readNameservers(files.read(networkManagerFile)),
    ...readUnbound([], files).forwarders,
  ];
  return { forwarders, isComplete: false };
}
