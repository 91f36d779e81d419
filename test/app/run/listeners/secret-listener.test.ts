import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { SecretListener } from '../../../../src/app/run/listeners/secret-listener.ts';
import { tagOf } from '../../../../src/core/crypto/network-secret.ts';
import { Secret } from '../../../../src/core/crypto/secret.ts';
import { Unreachable } from '../../../../src/core/errors/index.ts';
import type { Joined } from '../../../../src/store/state/state.ts';
import { network, peer } from '../../../core/samples.ts';
import { eventually } from '../../../lab/eventually.ts';
import { joinedTo } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

const networkSecret = new Secret(Buffer.alloc(32, 7).toString('base64'));
const tag = tagOf(networkSecret);
const unreachable = new Unreachable('https://x', 'refused', { delivered: false, heard: true, retryAfterMs: null });

/** The state of a host with this network secret, whose map of this revision lists it with a tag. */
function listed(secretTag: string | undefined, revision: string | null, secret: Secret | null = networkSecret): Joined {
  const self = peer(1, secretTag === undefined ? {} : { secretTag });
  return joinedTo(network([self, peer(2)], { revision }), { networkSecret: secret });
}

async function watch() {
  const simulated = await SimulatedHost.with(listed(undefined, '"1"'));
  const secrets = new SecretListener(simulated.tools, 'cpn0');
  let asked = 0;
  const {
    service: { onSecretTag: announces },
  } = simulated;
  const answer = { with: announces };
  simulated.service.onSecretTag = (tag) => {
    asked += 1;
    return answer.with(tag);
  };
  const look = async (state: Joined) => {
    const before = asked;
    const pass = passOf(await evaluateNetwork(simulated.tools, state));
    // The request is sent at once, but for the end of a failed one before it.
    for (let turn = 0; turn < 5 && asked === before; turn += 1) {
      secrets.onPass(pass);
      await sleep(10);
    }
    return asked > before;
  };
  return { simulated, answer, look };
}

it('reports the tag until a map contains it, once for each map', async () => {
  const { simulated, look } = await watch();
  expect(await look(listed(undefined, '"1"'))).toBe(true);
  expect(await look(listed(undefined, '"1"'))).toBe(false);
  expect(await look(listed(undefined, '"2"'))).toBe(true);
  expect(await look(listed(tag, '"3"'))).toBe(false);
  expect(simulated.service.announcedTags).toEqual([tag, tag]);
});

it('reports another secret, and its removal', async () => {
  const { simulated, look } = await watch();
  expect(await look(listed('ffeeddccbbaa9988', '"1"'))).toBe(true);
  expect(await look(listed(tag, '"1"', null))).toBe(true);
  expect(await look(listed(undefined, '"1"', null))).toBe(false);
  expect(simulated.service.announcedTags).toEqual([tag, null]);
});

it('reports once to a service without this resource', async () => {
  const { simulated, answer, look } = await watch();
  answer.with = () => false;
  expect(await look(listed(undefined, '"1"'))).toBe(true);
  expect(await look(listed(undefined, '"2"'))).toBe(false);
  expect(simulated.logged.filter(({ level }) => level !== 'debug')).toEqual([]);
});

it('repeats a failed report after the next pass, and logs the failure once', async () => {
  const { simulated, answer, look } = await watch();
  answer.with = () => {
    throw unreachable;
  };
  for (let round = 0; round < 3; round += 1) expect(await look(listed(undefined, '"1"'))).toBe(true);
  answer.with = () => true;
  expect(await look(listed(undefined, '"1"'))).toBe(true);
  await eventually(
    'the end of it',
    () => simulated.logged.at(-1)?.message === 'the tag of the network secret is reported',
  );
  expect(simulated.logged.filter(({ level }) => level === 'warn')).toHaveLength(1);
});

it('sends one report at a time, however many passes there are', async () => {
  const simulated = await SimulatedHost.with(listed(undefined, '"1"'));
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let requests = 0;
  simulated.service.onSecretTag = () => {
    requests += 1;
    return promise;
  };
  const secrets = new SecretListener(simulated.tools, 'cpn0');
  const pass = passOf(await evaluateNetwork(simulated.tools, listed(undefined, '"1"')));
  for (let turn = 0; turn < 3; turn += 1) secrets.onPass(pass);
  await eventually('a request', () => requests > 0);
  secrets.onPass(pass);
  resolve(true);
  await eventually('the end', () => simulated.service.announcedTags.length > 0);
  expect(requests).toBe(1);
});
