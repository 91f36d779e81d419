import { networkManagerFile, readDnsmasq } from './stubs/dnsmasq.ts';
import { readNameservers, type SettingsFiles, type StubSettings } from './stubs/settings.ts';
import { readUnbound } from './stubs/unbound.ts';

/** Reads the settings of the programs whose settings are known: dnsmasq(8) and unbound.conf(5). Null for others. */
export function readStubSettings(program: string, argv: readonly string[], files: SettingsFiles): StubSettings | null {
  if (program === 'dnsmasq') return readDnsmasq(argv, files);
  return program === 'unbound' ? readUnbound(argv, files) : null;
}

/**
 * The settings that the stubs of Debian and Fedora have by default, where the program that listens cannot be seen: a server too many
 * stays outside the tunnel, which one too few would not.
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
