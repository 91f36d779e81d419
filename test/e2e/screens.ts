import { writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { builtProgram } from '../lab/built-program.ts';
import { makeKey } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { onTerminal } from '../lab/terminal.ts';
import { join, patiently, startOffice } from './office.ts';

/** A terminal's text: the line that was typed, and all that followed. */
export interface Screen {
  readonly name: string;
  readonly text: string;
}

/** Records the screens of `cpn` in a network of three hosts, for the documents. */
export async function recordScreens(): Promise<Screen[]> {
  const office = await startOffice();
  await using _lab = office.lab;
  const program = await builtProgram();
  const api = office.api.join(' ');
  const edge = await office.lab.addHost('edge-1', { address: '203.0.113.11/24' });
  await join(office, edge, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  const daemon = await edge.spawnCpn(['run']);
  await daemon.waitForLine(/reconciling the network/);
  const laptop = await office.lab.addHost('laptop', { address: '203.0.113.33/24' });
  await join(office, laptop, '--type', 'admin_device');
  const web = await office.lab.addHost('web-1', { address: '203.0.113.22/24' });
  await writeFile(path(web.etcDir, 'resolv.conf'), 'nameserver 203.0.113.1\n');
  await writeFile(path(web.homeDir, 'key'), await makeKey(office.controlPlane, 'office', 'web-1'), { mode: 0o600 });

  const screens: Screen[] = [];
  const record = async (host: Host, name: string, line: string) => {
    const { rows } = await onTerminal(host, program, line, { columns: 80 });
    screens.push({ name, text: [`$ ${line}`, ...rows].map((row) => asInstalled(row, host)).join('\n') });
  };
  await record(web, 'join', `cpn join file:key ${api} --endpoint 203.0.113.22:51820`);
  await laptop.cpn(['reconcile']);
  for (const [host, address] of [
    [web, '10.77.0.1'],
    [laptop, '10.77.0.3'],
  ] as const)
    await host.ping(address, patiently);
  await record(web, 'status', 'cpn status');
  await web.exec(['ip', 'route', 'del', '192.168.50.0/24', 'dev', 'cpn0', 'table', '8350']);
  await record(web, 'plan', 'cpn plan');
  await record(web, 'doctor', 'cpn doctor');
  await record(laptop, 'failed-join', `cpn join file:${path(web.homeDir, 'key')} ${api}`);
  return screens;
}

/** Folders of the lab as those of a host, and a key of no host. */
function asInstalled(row: string, host: Host): string {
  return row
    .trimEnd()
    .replaceAll(host.configDir, '/etc/wireguard')
    .replaceAll(host.stateDir, '/var/lib/cpn')
    .replaceAll(host.runtimeDir, '/run/cpn')
    .replaceAll(/\/(?:tmp|dev\/shm)\/cpn-lab-\w+\/[\w-]+\/home\//g, '')
    .replaceAll(/[A-Za-z0-9+/]{43}=/g, 'cTHGxLGXe6TnRPWRj7O6bUyVVkJuhSPVSyzZgF7xv1E=')
    .replaceAll(/ key [A-Za-z0-9+/]{11}…/g, ' key cTHGxLGXe6T…');
}

/** A screen without what differs from one recording to the next: figures, times, and this machine's kernel. */
export function essenceOf(text: string): string {
  return text
    .split('\n')
    .filter((row) => !/^(note|problem|ok)\s+kernel\b|boot a kernel/.test(row))
    .map((row) =>
      row
        .replaceAll(/ \(\d+(\.\d)? s\)$/g, '')
        .replaceAll(/\d+ (s|min|h) ago/g, 'N ago')
        .replaceAll(/\d+(\.\d+)? (B|KiB|KB|kB|MiB)\b/g, 'N B')
        .replaceAll(/\b(port|pid) \d+/g, '$1 N')
        .replaceAll(/(203\.0\.113\.33):\d+/g, '$1:N')
        .replaceAll(/\d{4}-\d\d-\d\d/g, 'DAY')
        .replaceAll(/\b\d+ (that passed|findings)/g, 'N $1')
        .replaceAll(/ {2,}/g, '  ')
        .trimEnd(),
    )
    .join('\n');
}

const begin = (name: string) => `<!-- screen: ${name} -->`;
const end = '<!-- end of screen -->';

/** The screens in a document, by name. */
export function screensIn(document: string): Map<string, string> {
  const found = document.matchAll(/<!-- screen: ([a-z-]+) -->\n```text\n(.*?)\n```\n<!-- end of screen -->/gs);
  return new Map([...found].map(([, name = '', text = '']) => [name, text]));
}

/** A document with its screens replaced by the present ones. */
export function withScreens(document: string, screens: readonly Screen[]): string {
  return screens.reduce((text, { name, text: shown }) => {
    const [before, rest] = split(text, begin(name));
    if (rest === undefined) return text;
    const after = split(rest, end)[1] ?? '';
    return `${before}${begin(name)}\n\`\`\`text\n${shown}\n\`\`\`\n${end}${after}`;
  }, document);
}

function split(text: string, mark: string): [string, string | undefined] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + mark.length)];
}
