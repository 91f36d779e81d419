import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeIdentity, proveEnrollment, proveKey } from '../../../src/core/crypto/identity.ts';
import { parsePublicKey } from '../../../src/core/crypto/keys.ts';
import {
  closePlane,
  enroll,
  makeKey,
  makeNetwork,
  openPlane,
  type Plane,
  publicKey,
  withDatabase,
} from '../harness.ts';

interface Joined {
  readonly id: number;
  readonly name: string;
  readonly token: string;
}

let plane: Plane;
let admin: string;
let network: number;
let key: string;

beforeAll(async () => {
  plane = await openPlane();
  admin = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));
beforeEach(async () => {
  network = await makeNetwork(plane, admin);
  key = await makeKey(plane, admin, network);
});

async function join(name: string, headers = {}, fields = {}): Promise<Joined> {
  const { status, body } = await plane.call('POST', '/api/networks/enroll', {
    body: { enrollment_token: key, name, public_key: publicKey(), ...fields },
    headers,
  });
  expect(status).toBe(201);
  return { id: body.data.peer.id, name: body.data.peer.name, token: body.data.access_token };
}
const change = ({ id }: Joined, body: object, token = admin) =>
  plane.call('PATCH', `/api/networks/${network}/peers/${id}`, { token, body });
const rename = async (peer: Joined, name: string, token = peer.token) => (await change(peer, { name }, token)).status;
const remove = ({ id }: Joined) => plane.call('DELETE', `/api/networks/${network}/peers/${id}`, { token: admin });
/** The refusal of a name. */
async function refusal(peer: Joined, name: string, token = peer.token): Promise<string> {
  const { status, body } = await change(peer, { name }, token);
  expect(status).toBe(422);
  return body.errors.name[0];
}

describe('a name that another peer had before', () => {
  test('is refused while that peer is suspended, expired or back, with the remedy', async () => {
    const [web, other] = [await join('web-1'), await join('other')];
    expect(await rename(web, 'db-main', admin)).toBe(200);
    expect((await change(web, { suspended: true })).status).toBe(200);
    const holder = `peer "db-main" (${web.id})`;
    const refused = `"Web 1" has the host name web-1, an earlier one of ${holder}; remove ${holder}, or choose another name`;
    expect(await refusal(other, 'Web 1')).toBe(refused);
    expect((await change(web, { suspended: false })).status).toBe(200);
    expect(await refusal(other, 'Web 1')).toBe(refused);
    await withDatabase(plane.dataDir, (db) =>
      db.updateTable('peers').set({ expired: 1 }).where('id', '=', web.id).execute(),
    );
    expect(await refusal(other, 'Web 1', admin)).toBe(refused);
  });

  test('and that it gave itself, is refused to an admin too, and an enrolment gets a suffix', async () => {
    const [squatter, mail] = [await join('squatter'), await join('real')];
    for (const name of ['mail', 'spare']) expect(await rename(squatter, name)).toBe(200);
    expect(await refusal(mail, 'mail', admin)).toContain(`remove peer "spare" (${squatter.id})`);
    expect((await join('mail')).name).toBe('mail-2');
    expect((await join('Squatter')).name).toBe('Squatter-2');
  });

  test('is free once that peer is removed, and in another network', async () => {
    const [web, other] = [await join('web'), await join('other')];
    await rename(web, 'db');
    const elsewhere = await makeNetwork(plane, admin, { private_cidr: '10.78.0.0/24' });
    const reply = await enroll(plane, await makeKey(plane, admin, elsewhere), { name: 'web' });
    expect(reply.body.data.peer.name).toBe('web');
    await refusal(other, 'web');
    await remove(web);
    expect(await rename(other, 'web')).toBe(200);
  });

  test('stays with that peer when another host replaces it under its identity', async () => {
    const identity = makeIdentity(new Uint8Array(32).fill(7));
    const tokenHash = createHash('sha256').update(key).digest('hex');
    const joinAs = (serial: number) => {
      const public_key = parsePublicKey(publicKey());
      const proof = proveKey(identity, public_key, new Date(serial));
      const headers = {
        'peer-identity-key': identity.key,
        'peer-identity-proof': proveEnrollment(identity, { publicKey: public_key, tokenHash }),
        'peer-key-proof': `${proof.serial} ${proof.signature}`,
      };
      return join('web', headers, { public_key });
    };
    const first = await joinAs(1);
    await rename(first, 'db');
    const replaced = await joinAs(2);
    expect([replaced.id, replaced.name]).toEqual([first.id, 'db']);
    expect((await join('web')).name).toBe('web-2');
    expect(await rename(replaced, 'web')).toBe(200);
  });

  test('is the one with its id, where no label could be made of its name', async () => {
    const [nameless, other] = [await join('——'), await join('other')];
    await rename(nameless, 'named');
    await refusal(other, `peer-${nameless.id}`);
    expect(await rename(nameless, '——')).toBe(200);
    await refusal(other, 'named');
  });
});

describe('the former names of a peer', () => {
  test('are its own: it takes one back, and keeps the others', async () => {
    const [web, other] = [await join('web'), await join('other')];
    for (let round = 0; round < 5; round += 1) {
      for (const name of ['a', 'b']) expect(await rename(web, name)).toBe(200);
    }
    for (const name of ['web', 'a']) await refusal(other, name);
    expect(await rename(web, 'web')).toBe(200);
    for (const name of ['a', 'b']) await refusal(other, name);
  });

  test('are the first eight: a peer that renames itself on releases none of them', async () => {
    const [web, other] = [await join('web'), await join('other')];
    for (let count = 1; count <= 9; count += 1) await rename(web, `n${count}`);
    for (const name of ['web', 'n1', 'n7']) await refusal(other, name);
    expect(await rename(other, 'n8')).toBe(200);
  });

  test('are others after it took one of them back', async () => {
    const [web, other] = [await join('web'), await join('other')];
    for (const name of ['n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'n7', 'web', 'n8', 'n9']) await rename(web, name);
    for (const name of ['web', 'n1', 'n7']) await refusal(other, name);
    expect(await rename(other, 'n8')).toBe(200);
  });
});
