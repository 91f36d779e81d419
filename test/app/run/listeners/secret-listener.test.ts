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
import { Desk, joinedTo } from '../../desk.ts';
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
  const desk = await Desk.with(listed(undefined, '"1"'));
  const secrets = new SecretListener(desk.tools, 'cpn0');
  let asked = 0;
  const { announces } = desk;
  const answer = { with: announces };
  desk.announces = (tag) => {
    asked += 1;
    return answer.with(tag);
  };
  const look = async (state: Joined) => {
    const before = asked;
    const pass = passOf(await evaluateNetwork(desk.tools, state));
    // The request is sent at once, but for the end of a failed one before it.
    for (let turn = 0; turn < 5 && asked === before; turn += 1) {
      secrets.onPass(pass);
      await sleep(10);
    }
    return asked > before;
  };
  return { desk, answer, look };
}

it('reports the tag until a map contains it, once for each map', async () => {
  const { desk, look } = await watch();
  expect(await look(listed(undefined, '"1"'))).toBe(true);
  expect(await look(listed(undefined, '"1"'))).toBe(false);
  expect(await look(listed(undefined, '"2"'))).toBe(true);
  expect(await look(listed(tag, '"3"'))).toBe(false);
  expect(desk.announced).toEqual([tag, tag]);
});

it('reports another secret, and its removal', async () => {
  const { desk, look } = await watch();
  expect(await look(listed('ffeeddccbbaa9988', '"1"'))).toBe(true);
  expect(await look(listed(tag, '"1"', null))).toBe(true);
  expect(await look(listed(undefined, '"1"', null))).toBe(false);
  expect(desk.announced).toEqual([tag, null]);
});

it('reports once to a service without this resource', async () => {
  const { desk, answer, look } = await watch();
  answer.with = () => false;
  expect(await look(listed(undefined, '"1"'))).toBe(true);
  expect(await look(listed(undefined, '"2"'))).toBe(false);
  expect(desk.logged.filter(({ level }) => level !== 'debug')).toEqual([]);
});

it('repeats a failed report after the next pass, and logs the failure once', async () => {
  const { desk, answer, look } = await watch();
  answer.with = () => {
    throw unreachable;
  };
  for (let round = 0; round < 3; round += 1) expect(await look(listed(undefined, '"1"'))).toBe(true);
  answer.with = () => true;
  expect(await look(listed(undefined, '"1"'))).toBe(true);
  await eventually('the end of it', () => desk.logged.at(-1)?.message === 'the tag of the network secret is reported');
  expect(desk.logged.filter(({ level }) => level === 'warn')).toHaveLength(1);
});
