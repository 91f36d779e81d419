import { InvalidValue, printable, WrongUsage } from '../../core/errors.ts';
import type { Format } from '../../core/export/format.ts';
import type { Options, TunnelConfig } from '../../core/model.ts';
import { findNetwork, openAdminAt } from '../admin.ts';
import { apiFlags, type Command, type Flags } from '../command.ts';
import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { findRecipient, type Recipient } from '../hand-over.ts';
import { optionFlags, readAllowedRoutes, readNetworkSecret } from '../host-options.ts';
import type { Input } from '../input.ts';
import { note, warn } from '../output.ts';

/** The words for core/export/format, which is loaded when it is needed. */
const formats: readonly Format[] = ['wg-quick', 'networkmanager', 'networkd', 'openwrt'];

/** What is decided for a device that joins; a host of ours decided it when it joined. */
const deviceFlags: Flags = {
  ...apiFlags,
  'accept-routes': {
    ...optionFlags['accept-routes'],
    kind: 'switch',
    summary: 'with --new-peer, take the routes that connectors serve',
  },
  'allow-route': {
    kind: 'list',
    value: 'CIDR',
    summary: 'with --new-peer, take this route although the guard refuses it',
  },
  'network-secret-file': {
    kind: 'text',
    value: 'PATH',
    summary: "with --new-peer, the file with the network's secret, where its hosts have one",
  },
};

export const exportTunnel: Command = {
  name: 'export',
  argument: {
    usage: '[network]',
    summary: 'an interface, or the id or name of a network; may be left out where there is one',
  },
  summary: 'Write a tunnel, with its private key, for a phone or another program than cpn',
  flags: {
    format: { kind: 'text', value: 'FORMAT', summary: formats.join(', '), byDefault: 'wg-quick', choices: formats },
    output: { kind: 'text', value: 'FILE', summary: 'write there, readable for its owner alone; replaces no file' },
    qr: { kind: 'switch', summary: "as a QR code, which WireGuard's apps for phones scan" },
    interface: { kind: 'text', value: 'IF', summary: 'its name there', byDefault: 'as here, wgN in the place of cpnN' },
    'new-peer': {
      kind: 'text',
      value: 'NAME',
      summary:
        'not the tunnel of this host: enrol a device of that name, as an admin of the network; nothing of it is kept here',
    },
    ...deviceFlags,
  },
  examples: [
    'cpn export office --new-peer phone --qr',
    'cpn export cpn0 --format networkd --output /etc/systemd/network/70-wg0.netdev',
  ],
  async run(input) {
    const format = readFormat(input);
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

/** Writes down the tunnel of this host. */
async function exportOwn(input: Input, format: Format, recipient: Recipient): Promise<void> {
  for (const flag of Object.keys(deviceFlags)) {
    if (input.isTyped(flag)) throw new WrongUsage(`--${flag} is for --new-peer NAME; this host's own tunnel stands`);
  }
  const { readTunnel } = await import('../../app/read-tunnel.ts');
  const { interface: link, config } = await readTunnel(await openTools(input), input.argument('network'));
  await write(config, await readLink(input, link.replace(/^cpn/, 'wg')), format, recipient);
  warn(`these are the keys of ${link} itself: type "cpn down ${link}" before anything else brings them up`);
}

/** Enrols a device, and writes down the tunnel that it is to have. */
async function exportDevice(input: Input, format: Format, recipient: Recipient): Promise<void> {
  const named = input.argument('network');
  if (named === undefined) throw new WrongUsage('name the network that the new peer is to be in');
  const link = await readLink(input, 'wg0');
  const options = await readDeviceOptions(input);
  const networkSecret = await readNetworkSecret(input);
  const { admin, address } = await openAdminAt(input);
  const network = await findNetwork(admin, named);
  const { enrollDevice } = await import('../../app/enroll-device.ts');
  const request = { admin, address, network, name: input.need('new-peer'), link, options, networkSecret };
  await enrollDevice(await openTools(input), request, async ({ id, name, desired }) => {
    await write(desired.config, link, format, recipient);
    for (const { prefix, state, reason } of desired.report) {
      if (state === 'refused' && reason !== null) warn(`the route to ${prefix} is left out: ${reason}`);
    }
    note(
      `${printable(name)} is peer ${id} of the network, with ${desired.config.address.address}; it follows no later change`,
    );
  });
}

async function write(config: TunnelConfig, link: string, format: Format, recipient: Recipient): Promise<void> {
  const { renderExport } = await import('../../core/export/format.ts');
  await recipient.handOver(renderExport(format, config, link));
  const hint = hints[format];
  if (hint !== null) note(hint);
}

/** What to do with it, where that is not plain. */
const hints: Readonly<Record<Format, string | null>> = {
  'wg-quick': null,
  networkmanager:
    'NetworkManager takes it from /etc/NetworkManager/system-connections, owned by root; then type: nmcli connection reload',
  networkd:
    'systemd-networkd reads files as its own user; type: chgrp systemd-network on both, chmod 640, and networkctl reload',
  openwrt: 'add it to /etc/config/network, then type: service network reload',
};

function readFormat(input: Input): Format {
  const text = input.text('format') ?? 'wg-quick';
  const format = formats.find((each) => each === text);
  if (format) return format;
  throw new InvalidValue('--format', text, `is none of ${formats.join(', ')}`);
}

async function readLink(input: Input, byDefault: string): Promise<string> {
  const { parseLinkName } = await import('../../core/link-name.ts');
  return parseLinkName(input.text('interface') ?? byDefault, '--interface');
}

async function readDeviceOptions(input: Input): Promise<Options> {
  return {
    listenPort: null,
    mtu: null,
    acceptRoutes: input.switch('accept-routes', true),
    masquerade: false,
    allowRoutes: await readAllowedRoutes(input),
    probes: [],
    hosts: false,
    pin: 'report',
    rotateEvery: null,
  };
}
