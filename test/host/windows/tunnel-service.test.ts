import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runFrom } from '../../../src/host/process/run.ts';
import { portableHost } from '../../../src/host/wg-quick/portable-host.ts';
import { tunnelFiles } from '../../../src/host/wg-quick/tunnel-files.ts';
import { tunnelServiceManager } from '../../../src/host/windows/tunnel-service.ts';
import { prefix } from '../../core/samples.ts';
import { makePeer, newKeyPair, newPresharedKey } from '../samples.ts';
import { address, configure, create, destroy, question, removePeers, settle } from '../steps.ts';

/** Substitutes record their calls; the service starts and stops at the second poll. */
const wireguard = `#!/bin/sh
echo "wireguard $*" >>"$(dirname "$0")/calls"
case $1 in
  /installtunnelservice) basename "$2" .conf >"$(dirname "$0")/next";;
  /uninstalltunnelservice) : >"$(dirname "$0")/next";;
esac`;
const wg = `#!/bin/sh
cd "$(dirname "$0")"
case "$1 $2 $3" in
  "show interfaces "*) cat up; cp next up;;
  "show "*" dump") grep -qx "$2" up || { echo "Unable to access interface: The system cannot find the file specified." >&2; exit 1; }
    printf 'KEY\\t(none)\\t51820\\toff\\n' | sed "s|KEY|$(cat key)|";;
  addconf*) echo "wg $*" | sed 's|[^ /]*[.]device|X.device|' >>calls; cat "$3" >device; [ ! -e refuses ] || exit 1;;
  *) echo "wg $*" >>calls;;
esac`;

const { privateKey } = newKeyPair();
let folder = '';
let host: ReturnType<typeof portableHost>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-windows-'));
  await mkdir(join(folder, 'run'));
  for (const [name, text] of Object.entries({ wireguard, wg })) {
    await writeFile(join(folder, name), text);
    await chmod(join(folder, name), 0o755);
  }
  for (const [name, text] of Object.entries({ up: '', next: '', calls: '', key: privateKey.reveal() })) {
    await writeFile(join(folder, name), text);
  }
  const run = runFrom([folder]);
  const files = tunnelFiles(join(folder, 'run', 'tunnels'));
  host = portableHost({ run, files, manager: tunnelServiceManager(run, join(folder, 'run'), 1) });
});

afterEach(() => rm(folder, { recursive: true, force: true }));

const readCalls = async () => (await readFile(join(folder, 'calls'), 'utf8')).split('\n').filter((line) => line !== '');

describe('WireGuard for Windows, with substitutes for its programs', () => {
  test('gets the file, and waits until the interface appears and disappears', async () => {
    const file = join(folder, 'run', 'tunnels', 'cpn0.conf');
    const peer = makePeer({ presharedKey: newPresharedKey(), allowedIps: [prefix('10.77.0.9/32')] });
    await host.apply(create);
    await host.apply(configure({ privateKey, listenPort: 51820, peers: [peer] }));
    await host.apply(
      settle({ set: 'alias', value: 'cpn:7' }, { set: 'mtu', value: 1380 }, { add: 'address', address }),
    );
    expect(await readCalls()).toEqual([`wireguard /installtunnelservice ${file}`]);
    const text = await readFile(file, 'utf8');
    expect(text).toContain(`MTU = 1380\n\n[Peer]\nPublicKey = ${peer.publicKey}\n`);
    expect(await host.observe(question)).toMatchObject({
      link: { name: 'cpn0', mtu: 1380, alias: 'cpn:7' },
      device: { listenPort: 51820, peers: [] },
    });
    await host.apply(destroy);
    expect((await readCalls()).slice(1)).toEqual(['wireguard /uninstalltunnelservice cpn0']);
    expect(await host.observe(question)).toMatchObject({ link: null, device: null });
    expect(await readdir(join(folder, 'run'))).toEqual([]);
  });

  test('is changed by a file, which is removed afterwards, with no key in any argument', async () => {
    await writeFile(join(folder, 'up'), 'cpn0\n');
    const peer = makePeer({ presharedKey: newPresharedKey() });
    await host.apply(configure({ peers: [peer] }));
    expect(await readFile(join(folder, 'device'), 'utf8')).toContain(`PresharedKey = ${peer.presharedKey?.reveal()}`);
    await host.apply(removePeers(peer.publicKey));
    await host.apply({ do: 'renew-peers', link: 'cpn0', peers: [peer], changes: [] });
    const change = `wg addconf cpn0 ${join(folder, 'run')}/X.device`;
    const removal = `wg set cpn0 peer ${peer.publicKey} remove`;
    expect(await readCalls()).toEqual([change, removal, removal, change]);
    expect(await readdir(join(folder, 'run'))).toEqual([]);
  });

  test('leaves no file with a key where its change is refused', async () => {
    await writeFile(join(folder, 'up'), 'cpn0\n');
    await writeFile(join(folder, 'refuses'), '');
    const step = configure({ peers: [makePeer({ presharedKey: newPresharedKey() })] });
    await expect(host.apply(step)).rejects.toMatchObject({ name: 'CommandFailed' });
    expect(await readdir(join(folder, 'run'))).toEqual([]);
  });

  test('takes with the tunnel the file with a key that a killed process left', async () => {
    await writeFile(join(folder, 'up'), 'cpn0\n');
    await writeFile(join(folder, 'run', 'cpn0.device'), privateKey.reveal());
    await host.apply(configure({ peers: [makePeer()] }));
    expect(await readdir(join(folder, 'run'))).toEqual([]);
    await writeFile(join(folder, 'run', 'cpn0.device'), privateKey.reveal());
    await host.apply(destroy);
    expect(await readdir(join(folder, 'run'))).toEqual([]);
  });

  test('fails where its service does not start', async () => {
    await writeFile(join(folder, 'wireguard'), '#!/bin/sh\n');
    await host.apply(create);
    await host.apply(configure({ privateKey }));
    await expect(host.apply(settle({ add: 'address', address }))).rejects.toMatchObject({
      name: 'CommandFailed',
      message: expect.stringContaining('its interface did not appear; see the log of WireGuard'),
    });
    expect(await readdir(join(folder, 'run'))).toEqual([]);
  });
});
