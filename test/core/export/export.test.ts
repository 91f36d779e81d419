import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Format, renderExport } from '../../../src/core/export/format.ts';
import { formatInterfaceAddress, maskPrefix } from '../../../src/core/net/cidr.ts';
import { formatEndpoint } from '../../../src/core/net/endpoint.ts';
import { parseConfig, type TunnelConfig } from '../../../src/core/wg-quick/parse.ts';
import { address, keyPair, prefix } from '../samples.ts';
import { configs } from '../wg-quick/tunnel-configs.ts';
import { all, only, readIni, readUci, type Section } from './read-exports.ts';

/** Everything that an export must contain about a tunnel, secrets in clear text. */
function describeTunnel(config: TunnelConfig) {
  const { privateKey, listenPort, mtu, peers } = config;
  return {
    privateKey: privateKey.reveal(),
    address: formatInterfaceAddress(config.address),
    listenPort,
    mtu,
    peers: peers.map((peer) => ({
      publicKey: peer.publicKey as string,
      presharedKey: peer.presharedKey?.reveal() ?? null,
      endpoint: peer.endpoint && formatEndpoint(peer.endpoint),
      allowedIps: peer.allowedIps as readonly string[],
      keepalive: peer.keepalive,
    })),
  };
}

type TunnelDescription = ReturnType<typeof describeTunnel>;

const texts = (format: Format, config: TunnelConfig) => renderExport(format, config, 'wg0').map(({ text }) => text);
const number = (section: Section, key: string) => (only(section, key) === null ? null : Number(only(section, key)));
const list = (section: Section, key: string, separator: string) =>
  only(section, key)
    ?.split(separator)
    .filter((each) => each !== '') ?? [];
const need = (section: Section, key: string) => only(section, key) ?? `no ${key}`;

/** Parses each format as the manual of its program defines it. */
const readers: Readonly<Record<Format, (texts: readonly string[]) => TunnelDescription>> = {
  'wg-quick': ([text = '']) => describeTunnel(parseConfig(text)),

  networkmanager: ([text = '']) => {
    const sections = readIni(text);
    const named = (name: string) => sections.find((each) => each.name === name) ?? { name, values: [] };
    const peers = sections.filter(({ name }) => name.startsWith('wireguard-peer.'));
    expect(sections).toHaveLength(peers.length + 4);
    return {
      privateKey: need(named('wireguard'), 'private-key'),
      address: need(named('ipv4'), 'address1'),
      listenPort: number(named('wireguard'), 'listen-port'),
      mtu: Number(only(named('wireguard'), 'mtu')),
      peers: peers.map((peer) => ({
        publicKey: peer.name.replace('wireguard-peer.', ''),
        presharedKey: only(peer, 'preshared-key'),
        endpoint: only(peer, 'endpoint'),
        allowedIps: list(peer, 'allowed-ips', ';'),
        keepalive: number(peer, 'persistent-keepalive'),
      })),
    };
  },

  networkd: ([netdev = '', network = '']) => {
    const [device, tunnel, ...peers] = readIni(netdev);
    const [match, link] = readIni(network);
    if (!device || !tunnel || !match || !link) throw new Error('a section is missing');
    expect([need(device, 'Name'), need(device, 'Kind'), need(match, 'Name')]).toEqual(['wg0', 'wireguard', 'wg0']);
    return {
      privateKey: need(tunnel, 'PrivateKey'),
      address: need(link, 'Address'),
      listenPort: number(tunnel, 'ListenPort'),
      mtu: Number(only(device, 'MTUBytes')),
      peers: peers.map((peer) => ({
        publicKey: need(peer, 'PublicKey'),
        presharedKey: only(peer, 'PresharedKey'),
        endpoint: only(peer, 'Endpoint'),
        allowedIps: list(peer, 'AllowedIPs', ','),
        keepalive: number(peer, 'PersistentKeepalive'),
      })),
    };
  },

  openwrt: ([text = '']) => {
    const [own, ...peers] = readUci(text);
    if (own?.name !== "interface 'wg0'") throw new Error('the interface is missing');
    for (const peer of peers) expect([peer.name, only(peer, 'route_allowed_ips')]).toEqual(['wireguard_wg0', '1']);
    return {
      privateKey: need(own, 'private_key'),
      address: need(own, 'addresses'),
      listenPort: number(own, 'listen_port'),
      mtu: Number(only(own, 'mtu')),
      peers: peers.map((peer) => {
        const host = only(peer, 'endpoint_host');
        return {
          publicKey: need(peer, 'public_key'),
          presharedKey: only(peer, 'preshared_key'),
          endpoint: host && formatEndpoint({ host, port: Number(only(peer, 'endpoint_port')) }),
          allowedIps: all(peer, 'allowed_ips'),
          keepalive: number(peer, 'persistent_keepalive'),
        };
      }),
    };
  },
};

const sample: TunnelConfig = {
  privateKey: keyPair(1).privateKey,
  listenPort: null,
  fwmark: 0x209d,
  mtu: 1420,
  address: { address: address('10.77.0.2'), length: 24 },
  peers: [
    {
      publicKey: keyPair(2).publicKey,
      presharedKey: null,
      endpoint: { host: address('203.0.113.1'), port: 51820 },
      allowedIps: [prefix('10.77.0.1/32'), prefix('0.0.0.0/0'), prefix('192.168.50.0/24')],
      keepalive: 25,
    },
  ],
};

describe('an exported tunnel', () => {
  it.each(Object.entries(readers))('contains the whole tunnel for %s', (format, read) => {
    fc.assert(
      fc.property(configs, (config) => {
        expect(read(texts(format as Format, config))).toEqual(describeTunnel(config));
      }),
    );
  });

  it.each(Object.keys(readers))('names no mark of ours to %s, which apps for phones would refuse', (format) => {
    const withoutDefault = { ...sample, peers: sample.peers.map((peer) => ({ ...peer, allowedIps: [] })) };
    expect(texts(format as Format, withoutDefault).join()).not.toMatch(/mark/i);
  });

  it('has the routes for systemd-networkd that its address does not bring, each once, in the family of its address', () => {
    fc.assert(
      fc.property(configs, (config) => {
        const routes = readIni(texts('networkd', config)[1] ?? '').filter(({ name }) => name === 'Route');
        const onLink = maskPrefix(formatInterfaceAddress(config.address));
        const destinations = routes.map((route) => need(route, 'Destination'));
        expect(new Set(destinations).size).toBe(destinations.length);
        if (config.address.length === 32) {
          const allowed = new Set(config.peers.flatMap(({ allowedIps }) => allowedIps));
          allowed.delete(onLink);
          expect(new Set(destinations)).toEqual(allowed);
        }
      }),
    );
    expect(texts('networkd', sample)[1]).not.toContain('10.77.0.1/32');
  });

  it('makes systemd-networkd route everything but WireGuard’s own packets into a full tunnel', () => {
    const [netdev = '', network = ''] = texts('networkd', sample);
    expect(netdev).toContain('\nFirewallMark=8349\n');
    expect(network).toContain('Destination=0.0.0.0/0\nScope=link\nTable=8349\n');
    expect(network).toContain('Destination=192.168.50.0/24\nScope=link\n\n');
    const rules = readIni(network).filter(({ name }) => name === 'RoutingPolicyRule');
    expect(rules.map(({ values }) => Object.fromEntries(values))).toEqual([
      { Family: 'both', Table: 'main', SuppressPrefixLength: '0', Priority: '32764' },
      { Family: 'both', FirewallMark: '8349', InvertRule: 'yes', Table: '8349', Priority: '32765' },
    ]);
  });

  it('is the same connection for NetworkManager each time, and another one for other keys', () => {
    const uuid = (config: TunnelConfig) => /^uuid=(.*)$/m.exec(texts('networkmanager', config)[0] ?? '')?.[1];
    expect(uuid(sample)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(uuid({ ...sample, mtu: 1300 })).toBe(uuid(sample));
    expect(uuid({ ...sample, privateKey: keyPair(3).privateKey })).not.toBe(uuid(sample));
  });

  it('has a name that UCI takes', () => {
    const [{ text }] = renderExport('openwrt', sample, 'wg-office.1');
    expect(readUci(text).map(({ name }) => name)).toEqual(["interface 'wg_office_1'", 'wireguard_wg_office_1']);
  });

  it('has an address and routes of IPv6 alone for a tunnel of IPv6', () => {
    const [peer] = sample.peers;
    const allowedIps = ['fd00:50::/64', '192.168.50.0/24'].map(prefix);
    const config = {
      ...sample,
      address: { address: address('fd00::5'), length: 64 },
      peers: peer ? [{ ...peer, allowedIps }] : [],
    };
    const [keyfile = ''] = texts('networkmanager', config);
    expect(keyfile).toContain('[ipv4]\nmethod=disabled\n');
    expect(keyfile).toContain('[ipv6]\nmethod=manual\naddress1=fd00::5/64\n');
    const [, units = ''] = texts('networkd', config);
    expect(units).toContain('Destination=fd00:50::/64');
    expect(units).not.toContain('192.168.50.0/24');
  });

  it('writes an IPv6 endpoint in each program’s syntax', () => {
    const [peer] = sample.peers;
    const endpoint = { host: address('2001:db8::1'), port: 51820 };
    const config = { ...sample, peers: peer ? [{ ...peer, endpoint }] : [] };
    for (const format of ['wg-quick', 'networkmanager', 'networkd'] as const) {
      expect(texts(format, config)[0]).toMatch(/^Endpoint ?= ?\[2001:db8::1\]:51820$/im);
    }
    expect(texts('openwrt', config)[0]).toContain("endpoint_host '2001:db8::1'\n");
  });
});
