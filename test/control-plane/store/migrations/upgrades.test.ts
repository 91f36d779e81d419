/** Versions before and after on one database: upgrade, downgrade, and both at once where replicas can be. */
import { once } from 'node:events';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { previousProgram } from '../../../lab/previous-program.ts';
import { postgres } from '../../databases.ts';
import { enroll, makeFolder, makeKey, makeNetwork, openPlane, owner, type Plane } from '../../harness.ts';
import { startProcessBy } from '../../start-process.ts';

type Version = 'the previous version' | 'this version';

/** A control plane of one of the versions. */
interface Serving extends Pick<Plane, 'call'> {
  stop(): Promise<void>;
}

let program: string;

beforeAll(async () => {
  program = join(await previousProgram(), 'start.cjs');
});

async function serve(version: Version, dataDir: string): Promise<Serving> {
  if (version === 'this version') {
    const plane = await openPlane({ dataDir, now: () => new Date() });
    onTestFinished(() => plane.server.close());
    return { call: plane.call, stop: () => plane.server.close() };
  }
  const { call, child } = await startProcessBy(program, dataDir);
  const ended = once(child, 'exit');
  const stop = async () => {
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  };
  return { call, stop };
}

/** What an owner and the hosts of one network do in each turn, with all that was done in the turns before. */
class Life {
  #sessions: string[] = [];
  #network = 0;
  #key = '';
  readonly #peers: { readonly id: number; readonly token: string; name: string }[] = [];
  readonly #enrolments: { readonly fields: object; readonly idempotency: string; readonly address: string }[] = [];

  /** Logs in, makes the network where there is none, enrols a host, and changes the hosts of before. */
  async goOn(at: Serving): Promise<void> {
    const login = await at.call('POST', '/api/auth/login', { body: { ...owner, device_name: 'laptop' } });
    expect(login.status).toBe(200);
    const token: string = login.body.data.access_token;
    this.#sessions.push(token);
    if (this.#network === 0) {
      this.#network = await makeNetwork(at, token);
      this.#key = await makeKey(at, token, this.#network);
    }
    for (const [index, peer] of this.#peers.entries()) {
      peer.name = `edge-${index}-after-${this.#sessions.length}`;
      const path = `/api/networks/${this.#network}/peers/${peer.id}`;
      const changed = await at.call('PATCH', path, { token: peer.token, body: { name: peer.name } });
      expect([changed.status, changed.body.data?.name]).toEqual([200, peer.name]);
    }
    const name = `edge-${this.#peers.length}`;
    const [idempotency, fields] = [`turn-${name}`, { name, public_key: Buffer.alloc(32, name).toString('base64') }];
    const reply = await enroll(at, this.#key, fields, idempotency);
    expect(reply.status).toBe(201);
    const { peer, access_token } = reply.body.data;
    this.#peers.push({ id: peer.id, token: access_token, name });
    this.#enrolments.push({ fields, idempotency, address: peer.address });
  }

  /** Everything that was done before can be seen, by each credential that was given. */
  async check(at: Serving): Promise<void> {
    const path = `/api/networks/${this.#network}`;
    const names = this.#peers.map(({ name }) => name);
    for (const token of [...this.#sessions, ...this.#peers.map((peer) => peer.token)]) {
      const { status, body } = await at.call('GET', path, { token });
      expect([status, body.data?.peers.map((peer: { name: string }) => peer.name)]).toEqual([200, names]);
    }
    const [first] = this.#enrolments;
    const replay = await enroll(at, this.#key, first?.fields, first?.idempotency);
    expect([replay.status, replay.body.data?.peer.address]).toEqual([201, first?.address]);
    const ready = await at.call('GET', '/readyz');
    const audit = await at.call('GET', '/api/audit', { token: this.#sessions[0] });
    expect([ready.status, audit.status]).toEqual([200, 200]);
    expect(audit.body.data.filter(({ action }: { action: string }) => action === 'peer.enroll')).toHaveLength(
      names.length,
    );
  }
}

test.each<readonly Version[]>([
  ['the previous version', 'this version', 'the previous version', 'this version'],
  ['this version', 'the previous version'],
])('a database that %s made is served by %s', async (...turns) => {
  const dataDir = makeFolder();
  const life = new Life();
  for (const version of turns) {
    const serving = await serve(version, dataDir);
    await life.goOn(serving);
    await life.check(serving);
    await serving.stop();
  }
});

test.runIf(postgres !== null)('replicas of both versions serve side by side, whichever starts last', async () => {
  const dataDir = makeFolder();
  const life = new Life();
  const before = await serve('the previous version', dataDir);
  await life.goOn(before);
  const after = await serve('this version', dataDir);
  const again = await serve('the previous version', dataDir);
  for (const at of [after, before, again]) {
    await life.goOn(at);
    for (const each of [before, after, again]) await life.check(each);
  }
  await Promise.all([before, after, again].map((each) => each.stop()));
});
