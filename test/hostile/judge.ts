import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Host } from '../lab/host.ts';
import { type Contained, named } from './lie.ts';
import { obeyed } from './payloads.ts';
import type { Program, Said } from './program.ts';

/** A host takes no more than this, whatever it is told. */
const mostKiB = 512 * 1024;

/** What may stand in a wg-quick file: said here once more, and not by the program's own parser. */
const allowedLine =
  /^(|# [\x20-\x7e]*|\[(Interface|Peer)\]|(PrivateKey|Address|ListenPort|MTU|PublicKey|AllowedIPs|Endpoint|PersistentKeepalive) = [\w+/=.:,[\] ]+)$/;

/** What is wrong with how a command ended, whatever it was told. */
export function judgeWords({ stdout, stderr, peakKiB }: Said, secrets: readonly string[]): string[] {
  const lines = `${stdout}\n${stderr}`.split('\n');
  return [
    ...lines.filter((line) => obeyed.test(line)).map((line) => `says ${named(line)}`),
    ...secrets.filter((secret) => lines.join('').includes(secret)).map(() => 'says a secret'),
    ...(stderr.includes('should not happen') ? [`did not foresee it: ${stderr}`] : []),
    ...(peakKiB > 0 && peakKiB < mostKiB ? [] : [`held ${peakKiB} KiB`]),
  ];
}

/** What is wrong with a host that took what it may of a lie, and with what its status says then. */
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
  const said = await program.run(['status']);
  const routes = route === undefined ? [] : await readRoutes(program);
  const isRefused = route === undefined || routes.some((each) => each.prefix === route && each.state === 'refused');
  return [
    ...nowhere.filter((text) => places.includes(text)).map((text) => `has ${named(text)}`),
    ...(config ?? '')
      .split('\n')
      .filter((line) => !allowedLine.test(line))
      .map((line) => `has ${named(line)} in its file`),
    ...judgeWords(said, secrets),
    ...(isRefused ? [] : [`does not say that ${route} is refused: ${JSON.stringify(routes)}`]),
  ];
}

async function readRoutes(program: Program): Promise<{ prefix: string; state: string }[]> {
  const { networks } = JSON.parse((await program.run(['status', '--json'])).stdout);
  return networks[0].routes;
}
