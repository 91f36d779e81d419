import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseAddress, parsePrefix } from '../../src/core/net/cidr.ts';
import { fileStore } from '../../src/store/file-store.ts';
import { noNotes } from '../../src/store/notes.ts';
import type { Folders, HostStore, Notes } from '../../src/store/store.ts';

let root: string;
let folders: Folders;
let store: HostStore;
let path: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'cpn-notes-'));
  folders = { config: join(root, 'etc'), state: join(root, 'state'), runtime: join(root, 'run') };
  store = fileStore(folders);
  path = join(folders.runtime, 'cpn0.notes.json');
});

afterEach(() => rm(root, { recursive: true }));

const notes: Notes = {
  sync: {
    mode: 'push',
    lastSuccess: '2026-11-20T12:00:00.123Z',
    error: null,
    refused: 'gone',
    clonedSince: '2026-11-20T11:00:00.000Z',
  },
  daemonFailure: null,
  held: { since: 12.5 },
  silent: { b: 7, a: 5 },
  troubles: ['another program removes a route'],
  ways: { '192.168.50.0/24': { isOwn: true, links: ['eth1'], gone: 'eth1 is down, or has no carrier' } },
  dead: [parsePrefix('192.168.50.0/24')],
  dnsFailures: { 'corp.example': 'REFUSED', 'b.example': 'silent' },
  namesTaken: parseAddress('10.77.0.2'),
  inboundDropped: true,
  unloaded: 'nft -f - exited with 1',
  probed: {
    'nas.example': { address: parseAddress('192.168.50.20'), trouble: null },
    'a.example:443': { address: null, trouble: 'ping was not found' },
  },
  reachability: { reachableBy: 3, witnesses: 4 },
  alternating: { key: ['192.0.2.1:1', '192.0.2.2:1'] },
  paths: {
    '7': {
      switched: { to: 'relayed', at: '2026-11-20T12:00:00.000Z', why: 'lost' },
      attempt: {
        at: '2026-11-20T11:00:00.000Z',
        outcome: 'proven',
        tried: [{ endpoint: '203.0.113.7:4711', outcome: 'reached' }],
        nats: { own: 'port-kept', peer: 'symmetric' },
        observed: ['203.0.113.2:51820'],
      },
    },
  },
};
const synced = (lastSuccess: string | null, error: string | null = null): Notes => ({
  ...notes,
  sync: { mode: 'poll', lastSuccess, error, refused: null },
});
/** What tells whether a file was written, and not only touched. */
const trace = async () => [(await stat(path)).ino, await readFile(path, 'utf8')];

describe('notes', () => {
  it.each([
    ['after a success', notes],
    ['after a failure', synced('2026-11-20T12:00:00.000Z', 'unreachable')],
    ['before any success', synced(null)],
    [
      'while the daemon fails',
      { ...notes, daemonFailure: { error: 'unreachable', since: '2026-11-20T12:00:00.000Z', lastSuccess: null } },
    ],
    ['before any success, and after a failure', synced(null, 'unreachable')],
  ])('%s read as they were written', async (_, written) => {
    await store.writeNotes('cpn0', written);
    expect(await fileStore(folders).readNotes('cpn0')).toEqual(written);
  });

  it.each<[string, Partial<Notes['sync']>]>([
    ['the access token is not known', { refused: 'token', refusal: 'reading was refused (401): no; join again' }],
    ['access is forbidden', { refused: 'forbidden' }],
    ['the address of the last reply', { reached: parseAddress('2001:db8::1') }],
    ['early replies', { repliesEarly: true }],
    ['refused deltas', { refusesDeltas: true }],
    ['the clock of the service', { clock: { service: 1_700_000_000_000.5, uptime: 12.25 } }],
  ])('of a sync keep %s', async (_, changes) => {
    const written = { ...notes, sync: { ...noNotes.sync, ...changes }, held: { since: 1, isDeletion: true } as const };
    await store.writeNotes('cpn0', written);
    expect(await fileStore(folders).readNotes('cpn0')).toEqual(written);
  });

  it.each(['daemonFailure', 'dead', 'ways', 'unloaded', 'inboundDropped', 'probed', 'reachability', 'alternating'])(
    'of a version without %s can be read',
    async (field) => {
      const written = { ...notes, daemonFailure: { error: 'x', since: '2026-11-20T12:00:00.000Z', lastSuccess: null } };
      await store.writeNotes('cpn0', written);
      const { [field]: removed, ...older } = JSON.parse(await readFile(path, 'utf8'));
      expect(removed).toBeDefined();
      await writeFile(path, JSON.stringify(older));
      const { sync, ...read } = await store.readNotes('cpn0');
      expect(read).toEqual({ ...written, [field]: noNotes[field as keyof Notes], sync: undefined });
    },
  );

  it('keep times to the millisecond', async () => {
    for (const millisecond of [1, 29, 57, 113, 559, 999]) {
      const at = new Date(Date.UTC(2026, 10, 20, 12, 0, 0, millisecond)).toISOString();
      await store.writeNotes('cpn0', synced(at));
      expect((await store.readNotes('cpn0')).sync.lastSuccess).toBe(at);
    }
  });

  it('of a success like the last one change only the time of the file', async () => {
    await store.writeNotes('cpn0', notes);
    const before = await trace();
    const next = { ...notes, sync: { ...notes.sync, lastSuccess: '2026-11-20T12:01:00.000Z' } };
    await store.writeNotes('cpn0', next);
    expect(await trace()).toEqual(before);
    expect((await stat(path)).mtime.toISOString()).toBe(next.sync.lastSuccess);
    expect(await store.readNotes('cpn0')).toEqual(next);
  });

  it('that are the same are not written again, in any order', async () => {
    await store.writeNotes('cpn0', notes);
    const before = [...(await trace()), (await stat(path)).ctimeMs];
    await store.writeNotes('cpn0', { ...notes, silent: { a: 5, b: 7 } });
    expect([...(await trace()), (await stat(path)).ctimeMs]).toEqual(before);
  });

  it('are all kept when parts of them are changed at the same time', async () => {
    const { sync, ...parts } = notes;
    await store.writeNotes('cpn0', { ...noNotes, sync });
    await Promise.all(Object.entries(parts).map(([part, value]) => store.amendNotes('cpn0', { [part]: value })));
    expect(await fileStore(folders).readNotes('cpn0')).toEqual(notes);
  });

  it('that are empty make no file', async () => {
    expect(await store.readNotes('cpn0')).toEqual(noNotes);
    await store.writeNotes('cpn0', noNotes);
    expect(await readdir(folders.runtime)).toEqual([]);
    await store.writeNotes('cpn0', notes);
    await store.writeNotes('cpn0', noNotes);
    expect(await fileStore(folders).readNotes('cpn0')).toEqual(noNotes);
  });

  it('that are damaged count as none', async () => {
    await store.writeNotes('cpn0', notes);
    for (const text of ['', '\0\0\0', '{"sync":{}}']) {
      await writeFile(path, text);
      expect(await store.readNotes('cpn0')).toEqual(noNotes);
    }
    await store.writeNotes('cpn0', notes);
    expect(await store.readNotes('cpn0')).toEqual(notes);
  });

  it('that cannot be written are kept in memory, without an error', async () => {
    await writeFile(folders.runtime, 'a file in the place of the folder');
    await store.writeNotes('cpn0', notes);
    expect(await store.readNotes('cpn0')).toEqual(notes);
    await rm(folders.runtime);
    await store.writeNotes('cpn0', notes);
    const other = fileStore(folders);
    expect(await other.readNotes('cpn0')).toEqual(notes);
    await other.amendNotes('cpn0', { troubles: [] });
    expect((await store.readNotes('cpn0')).troubles).toEqual([]);
  });

  it('are readable only for the owner, and removed when the network is left', async () => {
    await store.writeNotes('cpn0', notes);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await store.forget('cpn0', []);
    expect(await store.readNotes('cpn0')).toEqual(noNotes);
    expect(await readdir(folders.runtime)).toEqual([]);
  });
});
