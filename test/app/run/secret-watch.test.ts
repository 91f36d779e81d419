import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { SecretWatch } from '../../../src/app/run/secret-watch.ts';
import { survey } from '../../../src/app/survey.ts';
import { Unreachable } from '../../../src/core/errors.ts';
import { tagOf } from '../../../src/core/network-secret.ts';
import { Secret } from '../../../src/core/secret.ts';
import type { Joined } from '../../../src/store/state.ts';
import { network, peer } from '../../core/samples.ts';
import { eventually } from '../../lab/eventually.ts';
import { Desk, joinedTo } from '../desk.ts';

const networkSecret = new Secret(Buffer.alloc(32, 7).toString('base64'));
const tag = tagOf(networkSecret);
const unreachable = new Unreachable('https://x', 'refused', { delivered: false, heard: true, retryAfterMs: null });

/** The state of a host with the network secret, unless told, whose map of this revision lists it with a tag. */
function listed(secretTag: string | undefined, revision: string | null, secret: Secret | null = networkSecret): Joined {
  const self = peer(1, secretTag === undefined ? {} : { secretTag });
  return joinedTo(network([self, peer(2)], { revision }), { networkSecret: secret });
}

async function watch() {
  const desk = await Desk.with(listed(undefined, '"1"'));
  const secrets = new SecretWatch(desk.tools, 'cpn0');
  let asked = 0;
  const { announces } = desk;
  const answer = { with: announces };
  desk.announces = (told) => {
    asked += 1;
    return answer.with(told);
  };
  const look = async (state: Joined) => {
    const before = asked;
    secrets.follow(await survey(desk.tools, state));
    // The question is asked at once, before anything else happens.
    await setImmediate();
    return asked > before;
  };
  return { desk, answer, look };
}

it('tells the tag until a map shows it, once for each map', async () => {
  const { desk, look } = await watch();
  expect(await look(listed(undefined, '"1"'))).toBe(true);
  expect(await look(listed(undefined, '"1"'))).toBe(false);
  expect(await look(listed(undefined, '"2"'))).toBe(true);
  expect(await look(listed(tag, '"3"'))).toBe(false);
  expect(desk.announced).toEqual([tag, tag]);
});

it('tells that there is another secret, or none any more', async () => {
  const { desk, look } = await watch();
  expect(await look(listed('ffeeddccbbaa9988', '"1"'))).toBe(true);
  expect(await look(listed(tag, '"1"', null))).toBe(true);
  expect(await look(listed(undefined, '"1"', null))).toBe(false);
  expect(desk.announced).toEqual([tag, null]);
});

it('tells a service that knows no such thing once', async () => {
  const { desk, answer, look } = await watch();
  answer.with = () => false;
  expect(await look(listed(undefined, '"1"'))).toBe(true);
  expect(await look(listed(undefined, '"2"'))).toBe(false);
  expect(desk.logged.filter(({ level }) => level !== 'debug')).toEqual([]);
});

it('tells it again at the next look where that failed, and says so once', async () => {
  const { desk, answer, look } = await watch();
  answer.with = () => {
    throw unreachable;
  };
  for (let round = 0; round < 3; round += 1) expect(await look(listed(undefined, '"1"'))).toBe(true);
  answer.with = () => true;
  expect(await look(listed(undefined, '"1"'))).toBe(true);
  await eventually('the end of it', () => desk.logged.at(-1)?.message.includes('knows the tag'));
  expect(desk.logged.filter(({ level }) => level === 'warn')).toHaveLength(1);
});
