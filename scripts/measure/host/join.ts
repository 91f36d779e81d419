import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeKey, startControlPlane } from '../../../test/lab/control-plane.ts';
import type { Host } from '../../../test/lab/host.ts';
import { Lab } from '../../../test/lab/lab.ts';
import { Owner } from '../../../test/lab/owner.ts';
import type { Comparison } from '../comparison.ts';
import { takeDown } from './bring-up.ts';
import { inTurn } from './in-turn.ts';

const rounds = 21;
const endpoint = '203.0.113.1:51820';

/**
 * A first host joins a network: by `cpn join`, and by an empty Node, a `curl` of the enrolment and
 * `wg-quick up` of the file that `cpn join` writes. The control plane is on the same host, so that
 * its replies go over loopback. For the second variant the key pair and the file are ready before;
 * the network has no other host, so that neither waits for a handshake.
 */
export async function compareJoin(): Promise<Comparison[]> {
  await using lab = await Lab.start();
  const controlPlane = await startControlPlane(lab);
  const { host, url } = controlPlane;
  const owner = new Owner(controlPlane);
  const network = await owner.createNetwork('office', '10.77.0.0/24');
  const take = async () => writeFile(join(host.folder, 'key'), await makeKey(controlPlane, 'office', 'first'));
  const prepareRequest = async () => {
    const { stdout: key } = await host.exec(['sh', '-c', 'wg genkey | wg pubkey']);
    const request = { enrollment_token: await owner.makeKey(network, 'first'), name: 'first', public_key: key.trim() };
    await writeFile(join(host.folder, 'request.json'), JSON.stringify({ ...request, type: 'origin', endpoint }));
  };
  const argv = ['join', `file:${host.folder}/key`, '--api', url, '--insecure-http', '--name', 'first'];
  const enrol = `curl -sSf -o reply.json -H 'content-type: application/json' --data @request.json ${url}/api/networks/enroll`;
  const variants = {
    cpn: {
      measured: () => host.cpn([...argv, '--endpoint', endpoint]),
      after: async () => {
        await host.cpn(['leave', '--yes']);
        await take();
      },
    },
    byHand: {
      measured: () => host.exec(['sh', '-ec', `cd ${host.folder}; node -e 0; ${enrol}; wg-quick up ./cpn0.conf`]),
      after: async () => {
        await takeDown(host, `wg-quick down ${host.folder}/cpn0.conf`);
        await owner.removePeer(network, await readPeer(host));
        await prepareRequest();
      },
    },
  };
  await take();
  await prepareRequest();
  await variants.cpn.measured();
  const config = await readFile(join(host.configDir, 'cpn0.conf'), 'utf8');
  await writeFile(join(host.folder, 'cpn0.conf'), config, { mode: 0o600 });
  await variants.cpn.after();
  const times = await inTurn(rounds, variants);
  return [
    {
      ...{ what: 'cpn join of a first peer', baseline: 'node -e 0; curl; wg-quick up', unit: 'ms' },
      ...{ ours: times.cpn, theirs: times.byHand, target: { ratioAtMost: 3, text: '≤ 3' } },
    },
  ];
}

/** The number of the peer that `curl` enrolled. */
async function readPeer(host: Host): Promise<number> {
  const { data } = JSON.parse(await readFile(join(host.folder, 'reply.json'), 'utf8'));
  return data.peer.id;
}
