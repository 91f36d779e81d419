import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { describeStateFiles } from '../../../src/app/status/describe-state-files.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import { dialled, keyPair, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) }), peer(3)]);
const enrollment = { ...joinedTo(map).enrollment, idempotencyKey: 'idempotency-key', tokenHash: 'hash-of-the-token' };

async function start() {
  const joined = joinedTo(map, { enrollment, networkSecret: new Secret(Buffer.alloc(32, 7).toString('base64')) });
  const membership = { ...joined.membership, accessToken: new Secret('cpp_own-token') };
  const simulated = await SimulatedHost.with({ ...joined, membership });
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  return simulated;
}

it('describes each state without its secrets, and returns them: also those of the enrolment and of the interface', async () => {
  const simulated = await start();
  const { presharedKey } = simulated.actual.device?.peers[0] ?? {};
  const { states, secrets, peers } = await describeStateFiles(simulated.tools);
  const own = ['idempotency-key', 'hash-of-the-token', 'cpp_own-token', keyPair(1).privateKey.reveal()];
  expect([...secrets]).toEqual(expect.arrayContaining([...own, presharedKey?.reveal() ?? 'there is one']));
  const text = JSON.stringify([...states]);
  for (const secret of secrets) expect(text).not.toContain(secret);
  expect(text).toContain('203.0.113.2');
  expect(peers).toEqual(['10.77.0.2', '10.77.0.3']);
});

it('describes also what cannot be read or observed', async () => {
  const { tools } = await start();
  await writeFile(join(dirname(tools.store.formerPath), 'cpn1.json'), '{', { mode: 0o600 });
  tools.host.observe = () => Promise.reject(new CommandFailed('ip link show cpn0', 1, 'no'));
  const { states, secrets } = await describeStateFiles(tools);
  expect([...states.keys()]).toEqual(['cpn0', 'cpn1']);
  expect(states.get('cpn1')).toEqual({ unreadable: expect.stringContaining('cpn1.json is damaged') });
  expect(secrets).toContain('cpp_own-token');
});
