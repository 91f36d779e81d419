import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { selectJoined, selectMeant, selectStates } from '../../src/app/select.ts';
import { NotJoined, UnreadableFile, WrongUsage } from '../../src/core/errors/index.ts';
import { fileStore } from '../../src/store/file-store.ts';
import type { HostStore } from '../../src/store/store.ts';
import { foldersIn, state } from '../store/samples.ts';

let root: string;
let store: HostStore;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'cpn-select-'));
  store = fileStore(foldersIn(root));
  await store.write(state);
  await store.write({ ...state, interface: 'cpn1' });
  await writeFile(join(foldersIn(root).state, 'cpn1.json'), 'not JSON');
});

afterEach(() => rm(root, { recursive: true }));

describe('a network whose state cannot be read', () => {
  it('is returned next to the readable ones when no name is given', async () => {
    const { states, unreadable } = await selectStates(store, undefined);
    expect(states).toEqual([state]);
    expect(unreadable).toEqual([{ interface: 'cpn1', error: expect.any(UnreadableFile) }]);
  });

  it('does not matter to a command for another one', async () => {
    for (const name of ['cpn0', 'office', '7']) {
      expect(await selectStates(store, name)).toEqual({ states: [state], unreadable: [] });
    }
  });

  it('is said to be unreadable when its interface is named', async () => {
    await expect(selectStates(store, 'cpn1')).rejects.toThrow(UnreadableFile);
  });

  it('is said to be unreadable although another network took its name', async () => {
    const { membership } = state;
    if (membership === null) throw new Error('the sample is not joined');
    await store.write({ ...state, membership: { ...membership, map: { ...membership.map, name: 'cpn1' } } });
    await expect(selectStates(store, 'cpn1')).rejects.toThrow(UnreadableFile);
  });

  it('is named where it may be the one that was meant', async () => {
    const refused = selectStates(store, 'another');
    await expect(refused).rejects.toThrow(NotJoined);
    await expect(refused).rejects.toThrow('joined: cpn0; unreadable: cpn1');
  });
});

describe('an interface', () => {
  it('means its network, whatever a member calls another one', async () => {
    const { membership } = state;
    if (membership === null) throw new Error('the sample is not joined');
    await store.write({ ...state, membership: { ...membership, map: { ...membership.map, name: 'cpn1' } } });
    const second = { ...state, interface: 'cpn1' };
    await store.write(second);
    expect(await selectStates(store, 'cpn1')).toEqual({ states: [second], unreadable: [] });
    expect((await selectStates(store, 'office')).states).toEqual([second]);
  });
});

describe('a command that interrupts', () => {
  it('needs a name where another network may be meant, also one that cannot be read', async () => {
    await expect(selectMeant(store, undefined, false)).rejects.toThrow('has joined 2 networks: cpn0 ("office", id 7');
    expect((await selectMeant(store, undefined, true)).unreadable).toHaveLength(1);
    expect((await selectMeant(store, 'office', false)).states).toEqual([state]);
    await expect(selectMeant(store, 'office', true)).rejects.toThrow(WrongUsage);
  });
});

it('an unfinished join is a warning, and fails a command that names it', async () => {
  await store.write({ ...state, interface: 'cpn2', membership: null });
  const warnings: string[] = [];
  const tools = { store, warn: (text: string) => void warnings.push(text) };
  expect((await selectJoined(tools, undefined)).states).toEqual([state]);
  expect(warnings).toEqual([expect.stringContaining('the join of cpn2 was not finished')]);
  await expect(selectJoined(tools, 'cpn2')).rejects.toThrow(NotJoined);
  expect(warnings).toHaveLength(1);
});
