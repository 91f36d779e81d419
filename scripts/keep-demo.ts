import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cutPath, DataCenter, serverAddress } from '../test/e2e/data-center.ts';
import { builtProgram } from '../test/lab/built-program.ts';
import type { Host } from '../test/lab/host.ts';
import type { Lab } from '../test/lab/lab.ts';
import { openPort } from '../test/lab/open-port.ts';

/** A running network, its console, and who may log in. */
export interface Demo {
  readonly lab: Lab;
  readonly url: string;
  /** Where the hosts reach the control plane. */
  readonly hostUrl: string;
  readonly email: string;
  readonly password: string;
  /** A script that runs a command on a host, as in `on edge-1 cpn status`. */
  readonly on: string;
}

/** Runs the demo until a signal ends it; `start` is for tests. */
export async function keepDemo(say: (text: string) => void, start = withDemo): Promise<void> {
  await start(say, async ({ lab, url, hostUrl, email, password, on }) => {
    const ended = Promise.withResolvers<void>();
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => ended.resolve());
    // A closed terminal takes no more output.
    process.stdout.on('error', () => {});
    say(`
console   ${url}
user      ${email}
password  ${password}

To move the route to edge-2, and to take web-1 off its network:
  ${on} edge-1 cpn drain
  ${on} web-1 ip link set eth0 down

The laptops anna and ben, each behind NAT, reach each other directly soon:
  ${on} anna cpn explain ben

To add the host web-3: in the console, make a key for a server, with the address of the control plane that hosts reach:
  ${hostUrl}
Then paste the command into a shell of web-3, the key at its prompt, and "cpn run" after it:
  ${on} web-3 sh

It runs until Ctrl-C, which removes everything.`);
    await ended.promise;
    say(`\nRemoving ${lab.folder} and its namespaces.`);
  });
}

/** Runs a network whose console has an address of this machine, for as long as `use` takes. */
export async function withDemo(say: (text: string) => void, use: (demo: Demo) => Promise<void>): Promise<void> {
  const center = await DataCenter.start();
  await using lab = center.lab;
  say('Hosts join: two connectors in front of a LAN, three servers, and three laptops, each behind a NAT of its own.');
  const edges = [await center.addConnector(1), await center.addConnector(2)];
  const laptops = Promise.all(
    ['admin', 'anna', 'ben'].map(async (name, at) => {
      const laptop = await center.addLaptop(name, `203.0.113.${41 + at}`);
      await lab.hosts.get(`${name}-home`)?.exec(['nft', '-f', '-'], { input: refuseNew });
      return laptop;
    }),
  );
  const [web1, web2, db1, spare] = await Promise.all([
    center.addOrigin('web-1', '203.0.113.21'),
    center.addOrigin('web-2', '203.0.113.22'),
    center.addOrigin('db-1', '203.0.113.23'),
    lab.addHost('web-3', { address: '203.0.113.24/24' }),
  ]);
  const hosts = [...edges, web1, web2, db1, ...(await laptops)];
  for (const host of hosts) talk(center, host, hosts);
  await center.awaitAnswers(web2, db1);
  say('A firewall starts to drop what web-2 and db-1 send each other.');
  await cutPath(web2, db1.address, ['input']);
  await cutPath(db1, web2.address, ['input']);

  using console = await openPort(center.controlPlane.host, 8787);
  const password = await readFile(join(center.controlPlane.host.homeDir, 'password'), 'utf8');
  const on = await writeShell(center, [...hosts, spare]);
  const [url, hostUrl] = [`http://127.0.0.1:${console.port}/`, center.controlPlane.url];
  await use({ lab, url, hostUrl, email: 'owner@example.net', password, on });
}

/**
 * As routers at home do. Otherwise the first packet of a peer leaves a connection there, and the
 * router gives another port to those of the host: there is no direct path then.
 */
const refuseNew = `
add chain ip nat input { type filter hook input priority 0; }
add rule ip nat input iifname "eth0" meta l4proto udp ct state new drop
`;

/** Keeps some traffic going: each host pings each other one, and the server in the LAN. */
function talk(center: DataCenter, host: Host, hosts: readonly Host[]): void {
  const addresses = [...hosts.filter((other) => other !== host).map((other) => center.address(other)), serverAddress];
  const pings = addresses.map((address) => `ping -n -q -c 3 -i 0.3 -W 2 ${address} &`).join(' ');
  host.spawn(['sh', '-c', `while :; do ${pings} sleep 15; wait; done >/dev/null 2>&1`]);
}

/** Writes {@link Demo.on}. */
async function writeShell({ lab: { folder } }: DataCenter, hosts: readonly Host[]): Promise<string> {
  await mkdir(join(folder, 'bin'));
  await symlink(await builtProgram(), join(folder, 'bin/cpn'));
  // The command of the console has it, and the real one looks for cpn elsewhere.
  await writeFile(join(folder, 'bin/sudo'), '#!/bin/sh\nexec "$@"\n', { mode: 0o700 });
  const cases = hosts.map((host) => {
    const variables = Object.entries({ ...host.env, PATH: `${folder}/bin:${host.env.PATH}` });
    const env = variables.map(([name, value]) => `'${name}=${value}'`).join(' ');
    return `${host.name}) exec env -i "TERM=$TERM" ${env} ${host.enter([]).join(' ')} "$@" ;;`;
  });
  const otherwise = `*) echo "hosts: ${hosts.map(({ name }) => name).join(', ')}" >&2; exit 2 ;;`;
  const path = join(folder, 'on');
  const script = ['#!/bin/sh', '[ $# -gt 1 ] || set -- ""', 'host=$1; shift', 'case $host in', ...cases, otherwise];
  await writeFile(path, `${[...script, 'esac'].join('\n')}\n`, { mode: 0o700 });
  return path;
}
