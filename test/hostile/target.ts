import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Host } from '../lab/host.ts';
import type { Lab } from '../lab/lab.ts';

/** The enrolment key of every host. */
export const enrolmentKey = 'cpn_enrolment-key-of-the-host';

/** Adds a host on the wan with all that a route could cut off: a LAN, a gateway, a resolver, routes of its own. */
export async function addTarget(lab: Lab, number: number): Promise<Host> {
  const host = await lab.addHost(`target-${number}`, { address: `203.0.113.${20 + number}/24` });
  await host.plug(await lab.addSegment(`lan-${number}`), { address: '192.168.20.5/24' });
  const routes = ['default via 198.18.0.1 dev eth0 onlink', '172.31.0.0/16 via 198.18.0.1 dev eth0 onlink'];
  await host.exec(['ip', '-batch', '-'], { input: routes.map((route) => `route add ${route}\n`).join('') });
  await writeFile(join(host.etcDir, 'resolv.conf'), 'nameserver 198.51.100.53\noptions timeout:1 attempts:1\n');
  await writeFile(join(host.homeDir, 'key'), enrolmentKey, { mode: 0o600 });
  return host;
}

/**
 * The whole host as a text, without the notes of the last pass, a sysctl that goes with the interface, and the shells
 * that the driver keeps.
 */
export async function readHost(host: Host): Promise<string> {
  const passing =
    /^run\/cpn\/|^net\/ipv4\/conf\/cpn0\/promote_secondaries |^\/usr\/bin\/sh -c unset PWD .* sh \/usr\/s?bin\/(wg|ip|nft) /;
  const lines = (await host.state()).split('\n');
  return lines.filter((line) => !passing.test(line)).join('\n');
}

/** The files that a pass may write: state, wg-quick file and hosts file; a file that is not there is empty. */
export async function readHostFiles({ stateDir, configDir, etcDir }: Host): Promise<string> {
  const paths = [join(stateDir, 'cpn0.json'), join(configDir, 'cpn0.conf'), join(etcDir, 'hosts')];
  const texts = await Promise.all(paths.map((path) => readFile(path, 'utf8').catch(() => '')));
  return texts.join('\n');
}

/** Without the store's copy of the previous state. */
export function withoutCopy(state: string): string {
  return state.replace(/^state\/cpn0\.json\.previous .*\n?/m, '');
}

/** The lines that differ. */
export function differences(before: string, after: string): string {
  const [one, other] = [new Set(before.split('\n')), new Set(after.split('\n'))];
  const gone = [...one].filter((line) => !other.has(line)).map((line) => `- ${line}`);
  const come = [...other].filter((line) => !one.has(line)).map((line) => `+ ${line}`);
  return [...gone, ...come].join('\n');
}
