import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtProgram } from '../lab/built-program.ts';
import { Process } from '../lab/process.ts';
import { AdminShell, startPlane } from './admin-shell.ts';

let shell: AdminShell;
let server: Process;
let url: string;

beforeAll(async () => {
  shell = await AdminShell.open();
  ({ server, url } = await startPlane(shell));
  await shell.output(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24']);
});

afterAll(async () => {
  await server?.stop();
  await shell?.close();
});

/** Makes two events: a host enrols, and is removed. */
async function enrolAndRemove(name: string): Promise<void> {
  const key = await shell.write('key', (await shell.output(['key', 'create', 'office', '--name', 'k'])).trim());
  const publicKey = randomBytes(32).toString('base64');
  const fields = [`enrollment_token=@${key}`, 'peer_type=origin', `public_key=${publicKey}`].flatMap((field) => [
    '--field',
    field,
  ]);
  await shell.output(['api', 'POST', '/api/networks/enroll', ...fields, '--raw-field', `name=${name}`]);
  await shell.cpn(['peer', 'remove', '--yes', 'office', name]);
}

describe('events', () => {
  it('are none at first', async () => {
    expect(await shell.cpn(['events'])).toMatchObject({ exitCode: 0, stdout: '', stderr: 'there are no events\n' });
    expect(await shell.json(['events', 'office', '--type', 'peer.offline'])).toEqual({ events: [] });
  });

  it('are listed, oldest first, also by type and in pages', async () => {
    await enrolAndRemove('web-1');
    await enrolAndRemove('web-2');
    expect(await shell.output(['events', 'office'])).toMatch(
      /^id +when +what\n1 +20\S+Z +peer\.enrolled +web-1 joined\n2 +20\S+Z +peer\.removed +web-1 left/,
    );
    const ids = async (...flags: string[]) =>
      (await shell.json(['events', ...flags])).events.map(({ id }: { id: number }) => id);
    expect(await ids()).toEqual([1, 2, 3, 4]);
    expect(await ids('--limit', '1')).toEqual([4]);
    expect(await ids('--after', '1', '--limit', '2')).toEqual([2, 3]);
    expect(await ids('--type', 'peer.removed', '--limit', '1')).toEqual([4]);
    expect((await shell.cpn(['events', '--after', '1', '--limit', '2'])).stderr).toBe('later events: --after 3\n');
  });

  it('are followed through a restart of the control plane, each once', async () => {
    const followers = [
      shell.spawn(['events', 'office', '--follow', '--json']),
      shell.spawn(['events', '--follow', '--after', '3', '--type', 'peer.removed']),
    ];
    const [json, text] = followers as [Process, Process];
    await json.waitForLine(/"id":4,/);
    await text.waitForLine(/^4 {2}/);
    await enrolAndRemove('web-3');
    await text.waitForLine(/^6 {2}/);
    server.signal('SIGKILL');
    await server.exited;
    for (const follower of followers) await follower.waitForLine(/is unreachable: .*; retrying$/);
    const data = ['--listen', new URL(url).host, '--data', `${shell.folder}/data`];
    server = shell.spawn(['control-plane', 'serve', ...data]);
    await server.waitForLine(/control plane listening/);
    await enrolAndRemove('web-4');
    for (const follower of followers) await follower.waitForLine(/connected to the control plane again/);
    await json.waitForLine(/"id":8,/);
    await text.waitForLine(/^8 {2}/);
    await enrolAndRemove('web-\u202e5');
    await json.waitForLine(/"id":10,/);
    await text.waitForLine(/^10 {2}/);
    const outcomes = await Promise.all(
      followers.map(async (follower) => {
        follower.signal('SIGINT');
        return follower.exited;
      }),
    );
    expect(outcomes.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
    const [lines = [], rows = []] = outcomes.map(({ stdout }) => stdout.trimEnd().split('\n'));
    expect(lines.map((line) => JSON.parse(line).id)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(rows.map((row) => row.split(/ {2,}/).slice(0, 4))).toEqual(
      [2, 3, 4, 5].map((n) => [
        String(2 * n),
        expect.stringMatching(/^20\S+Z$/),
        'peer.removed',
        expect.stringMatching(n === 5 ? /^web-\ufffd5 left/ : new RegExp(`^web-${n} left`)),
      ]),
    );
    expect(lines.join('')).not.toContain('\u202e');
  });

  it('are followed from a start at which the control plane is unreachable, and not with a wrong token', async () => {
    const data = ['--listen', new URL(url).host, '--data', `${shell.folder}/data`];
    server.signal('SIGTERM');
    await server.exited;
    const follower = shell.spawn(['events', 'office', '--follow', '--after', '9999']);
    await follower.waitForLine(/ECONNREFUSED.*; retrying$/);
    server = shell.spawn(['control-plane', 'serve', ...data]);
    await server.waitForLine(/control plane listening/);
    await follower.waitForLine(/connected to the control plane again/);
    await follower.waitForLine(/there are no events after 9999; the newest is 10$/);
    await enrolAndRemove('web-6');
    await follower.waitForLine(/^12 {2}/);
    follower.signal('SIGINT');
    const { exitCode, stdout, stderr } = await follower.exited;
    expect([exitCode, stdout.match(/^\d+/gm)]).toEqual([0, ['11', '12']]);
    expect(stderr.trimEnd().split('\n')).toHaveLength(3);
    const wrong = { CPN_API_TOKEN: 'cpn_wrong' };
    expect(await shell.fail(['events', 'office', '--follow'], wrong)).toMatchObject({ exitCode: 4 });
    expect(await shell.cpn(['events', '--after', '9999'])).toMatchObject({
      ...{ exitCode: 0, stdout: '' },
      stderr: 'there are no events after 9999; the newest is 12\n',
    });
  });

  it('are followed until the reader goes away', async () => {
    const piped = `set -o pipefail; '${await builtProgram()}' events office --follow --limit 1 | { read -r line; echo "$line"; }`;
    const follower = new Process(['bash', '-c', piped], { env: shell.environment });
    await follower.waitForLine(/^12 {2}/);
    // Only a write finds that the reader is gone.
    await enrolAndRemove('web-7');
    expect(await follower.endWithin(20_000)).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('are those of one network, whose name is needed where there are more', async () => {
    await shell.output(['network', 'create', '--name', 'lab', '--cidr', '10.78.0.0/24']);
    expect(await shell.fail(['events'])).toMatchObject({
      exitCode: 2,
      stderr: 'cpn: there are 2 networks; name one: "office" (1), "lab" (2)\n',
    });
    expect(await shell.json(['events', 'lab'])).toEqual({ events: [] });
    expect((await shell.fail(['events', 'lab', '--type', 'peer.gone'])).stderr).toContain(
      '--type "peer.gone" must be one of peer.enrolled',
    );
  });
});
