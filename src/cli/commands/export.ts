import type { Network } from '../../api/admin-service.ts';
import type { EnrolledDevice } from '../../app/export/enroll-device.ts';
import { printable, WrongUsage } from '../../core/errors/index.ts';
import { renderProfile } from '../../core/export/device-profile.ts';
import type { ExportedFiles, Format } from '../../core/export/format.ts';
import { defaultOptions, type Options } from '../../core/map/options.ts';
import { parseLinkName } from '../../core/net/link-name.ts';
import type { TunnelConfig } from '../../core/wg-quick/parse.ts';
import { findNetwork, openAdminAt } from '../admin.ts';
import { findConnector } from '../api/device-connector.ts';
import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { apiFlags, type Flags } from '../input/flags.ts';
import { type Input, parseChoice } from '../input/input.ts';
import { findRecipient, type Recipient } from '../output/hand-over.ts';
import { note, warn } from '../output/output.ts';
import type { Command } from '../parse/command.ts';
import { optionFlags, readAllowedRoutes, readNetworkSecret } from '../parse/host-options.ts';

/** The formats of core/export/format, which is loaded on demand. */
const formats: readonly Format[] = ['wg-quick', 'networkmanager', 'networkd', 'openwrt'];

/** Settings of a new device. A host of ours set them when it joined. */
const deviceFlags: Flags = {
  ...apiFlags,
  via: {
    kind: 'text',
    value: 'PEERS',
    summary:
      'with --new-peer, peers that the device dials: "connectors" (one of them, valid while peers come and go) or "all" that have an endpoint',
    byDefault: 'connectors where one has an endpoint',
    choices: ['connectors', 'all'],
  },
  connector: { kind: 'text', value: 'PEER', summary: 'with --new-peer, id or name of the connector that it dials' },
  'accept-routes': {
    ...optionFlags['accept-routes'],
    kind: 'switch',
    summary: 'with --new-peer, accept the routes that connectors serve',
  },
  'allow-route': {
    kind: 'list',
    value: 'CIDR',
    summary: 'with --new-peer, accept this route although the guard refuses it',
  },
  'network-secret-file': {
    kind: 'text',
    value: 'PATH',
    summary: "with --new-peer, the network's secret file, if its hosts have one",
  },
};

export const exportTunnel: Command = {
  name: 'export',
  argument: {
    usage: '[network]',
    summary: 'interface, or id or name of a network; optional with one network',
  },
  summary: 'Export a tunnel, with its private key, for a phone or another WireGuard program',
  flags: {
    format: { kind: 'text', value: 'FORMAT', summary: formats.join(', '), byDefault: 'wg-quick', choices: formats },
    output: { kind: 'text', value: 'FILE', summary: 'write to this file with mode 0600; must not exist' },
    qr: { kind: 'switch', summary: "print a QR code for WireGuard's phone apps" },
    interface: {
      kind: 'text',
      value: 'IF',
      summary: 'interface name in the export',
      byDefault: "this host's, with wgN for cpnN",
    },
    'new-peer': {
      kind: 'text',
      value: 'NAME',
      summary:
        'enrol a new device of this name, as an admin of the network, and export its tunnel; stores nothing here',
    },
    ...deviceFlags,
  },
  examples: [
    'cpn export office --new-peer phone --qr',
    'cpn export cpn0 --format networkd --output /etc/systemd/network/70-wg0.netdev',
  ],
  async run(input) {
    const format = parseChoice('--format', input.text('format') ?? 'wg-quick', formats);
    const recipient = await findRecipient(input, format);
    try {
      await (input.text('new-peer') === undefined ? exportOwn : exportDevice)(input, format, recipient);
    } catch (error) {
      await recipient.cancel();
      throw error;
    }
    return exitCodes.done;
  },
};

async function exportOwn(input: Input, format: Format, recipient: Recipient): Promise<void> {
  for (const flag of Object.keys(deviceFlags)) {
    if (input.isTyped(flag))
      throw new WrongUsage(`--${flag} is for --new-peer NAME; this host's own tunnel has its settings already`);
  }
  const { readTunnel } = await import('../../app/export/read-tunnel.ts');
  const { interface: link, config } = await readTunnel(await openTools(input), input.argument('network'));
  await write(config, await readLink(input, link.replace(/^cpn/, 'wg')), format, recipient);
  warn(`this file has the private key of ${link}: run "cpn down ${link}" before you use it elsewhere`);
}

/** Enrols a device, and exports its tunnel. */
async function exportDevice(input: Input, format: Format, recipient: Recipient): Promise<void> {
  const named = input.argument('network');
  if (named === undefined) throw new WrongUsage('name the network for the new peer');
  const link = await readLink(input, 'wg0');
  const options = await readDeviceOptions(input);
  const networkSecret = await readNetworkSecret(input);
  const { admin, address } = await openAdminAt(input);
  const network = await admin.readNetwork(await findNetwork(admin, named));
  const connector = await findConnector(input, admin, network);
  const { enrollDevice } = await import('../../app/export/enroll-device.ts');
  const { renderExport } = await import('../../core/export/format.ts');
  const toFiles = ({ config, profile, range }: EnrolledDevice): ExportedFiles => {
    if (profile === null || format !== 'wg-quick') return renderExport(format, config, link);
    const presharedKey = config.peers[0]?.presharedKey?.reveal() ?? null;
    const own = { privateKey: config.privateKey.reveal(), address: config.address.address };
    return [{ suffix: '.conf', text: renderProfile({ ...own, presharedKey, range, profile }) }];
  };
  const request = { admin, address, network, name: input.need('new-peer'), link, options, networkSecret, connector };
  await enrollDevice(await openTools(input), request, {
    check: async (draft) => recipient.check(toFiles(draft)),
    async handOver(device) {
      await recipient.handOver(toFiles(device));
      noteHint(format);
      for (const { prefix, reason } of device.refused) warn(`the route to ${prefix} is left out: ${reason}`);
      const { id, name, config } = device;
      note(
        `${printable(name)} is peer ${id} of the network, with ${config.address.address}${describeUpdates(connector)}`,
      );
      if (device.isWaiting) warn(`it waits for approval; to approve it: cpn peer approve ${network.id} ${id}`);
    },
  });
}

function describeUpdates(connector: Network['peers'][number] | null): string {
  if (connector === null) return '; it does not receive later changes of the network';
  return `; it reaches the network through ${printable(connector.name)} alone; "cpn peer list" shows when its profile is outdated`;
}

async function write(config: TunnelConfig, link: string, format: Format, recipient: Recipient): Promise<void> {
  const { renderExport } = await import('../../core/export/format.ts');
  await recipient.handOver(renderExport(format, config, link));
  noteHint(format);
}

function noteHint(format: Format): void {
  const hint = hints[format];
  if (hint !== null) note(hint);
}

/** How to install the file, if it is not obvious. */
const hints: Readonly<Record<Format, string | null>> = {
  'wg-quick': null,
  networkmanager:
    'put it into /etc/NetworkManager/system-connections, owned by root; then run: nmcli connection reload',
  networkd:
    'systemd-networkd reads files as its own user; run: chgrp systemd-network on both, chmod 640, networkctl reload',
  openwrt: 'add it to /etc/config/network; then run: service network reload',
};

async function readLink(input: Input, byDefault: string): Promise<string> {
  return parseLinkName(input.text('interface') ?? byDefault, '--interface');
}

async function readDeviceOptions(input: Input): Promise<Options> {
  const acceptRoutes = input.switch('accept-routes', true);
  return { ...defaultOptions, masquerade: false, acceptRoutes, allowRoutes: await readAllowedRoutes(input) };
}
