import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Host } from '../lab/host.ts';
import { type Contained, named } from './malicious-reply.ts';
import { obeyed } from './payloads.ts';
import type { CommandResult, Program } from './program.ts';

/** A host uses no more memory than this, whatever it receives. */
const mostKiB = 512 * 1024;

/** What a wg-quick file may have: written here again, independently of the program's own parser. */
const allowedLine =
  /^(|# [\x20-\x7e]*|\[(Interface|Peer)\]|(PrivateKey|Address|ListenPort|MTU|PublicKey|AllowedIPs|Endpoint|PersistentKeepalive) = [\w+/=.:,[\] ]+)$/;

/** The faults in how a command ended, whatever it received. */
export function judgeOutput({ stdout, stderr, peakKiB }: CommandResult, secrets: readonly string[]): string[] {
  const lines = `${stdout}\n${stderr}`.split('\n');
  return [
    ...lines.filter((line) => obeyed.test(line)).map((line) => `prints ${named(line)}`),
    ...secrets.filter((secret) => lines.join('').includes(secret)).map(() => 'says a secret'),
    ...(stderr.includes('should not happen') ? [`did not foresee it: ${stderr}`] : []),
    ...(peakKiB > 0 && peakKiB < mostKiB ? [] : [`held ${peakKiB} KiB`]),
  ];
}

/** The faults of a host, and of its status, after a reply of which it may apply a part. */
export async function judgeHost(
  host: Host,
  program: Program,
  { nowhere, route }: Contained,
  secrets: readonly string[],
): Promise<string[]> {
  const [config, hosts] = await Promise.all(
    ['wireguard/cpn0.conf', 'hosts'].map((path) => readFile(join(host.etcDir, path), 'utf8')),
  );
  const state = (await host.state()).split('\n').filter((line) => line.includes('cpn0'));
  const places = [...state, config, hosts].join('\n');
  const status = await program.run(['status']);
  const routes = route === undefined ? [] : await readRoutes(program);
  const isRefused = route === undefined || routes.some((each) => each.prefix === route && each.state === 'refused');
  return [
    ...nowhere.filter((text) => places.includes(text)).map((text) => `has ${named(text)}`),
    ...(config ?? '')
      .split('\n')
      .filter((line) => !allowedLine.test(line))
      .map((line) => `has ${named(line)} in its file`),
    ...judgeOutput(status, secrets),
    ...(isRefused ? [] : [`does not say that ${route} is refused: ${JSON.stringify(routes)}`]),
  ];
}

async function readRoutes(program: Program): Promise<{ prefix: string; state: string }[]> {
  const { networks } = JSON.parse((await program.run(['status', '--json'])).stdout);
  return networks[0].routes;
}
