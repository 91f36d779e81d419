import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Command } from '../../../src/cli/parse/command.ts';
import { loadCommands } from '../../../src/cli/parse/commands.ts';
import { readCommandLine } from '../../../src/cli/program.ts';
import { WrongUsage } from '../../../src/core/errors/index.ts';
import { fileStore } from '../../../src/store/file-store.ts';
import { foldersIn, state } from '../../store/samples.ts';

/**
 * A host with two networks of two control planes. A member of the second one has renamed it: to the interface of the first one, which
 * is the name of the first one too.
 */
let root: string;

const name = 'cpn0\u001b[31m';

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'cpn-ambiguous-'));
  const store = fileStore(foldersIn(root));
  const { membership } = state;
  if (membership === null) throw new Error('the sample is not joined');
  const called = { ...membership, map: { ...membership.map, name } };
  await store.write({ ...state, enabled: false, membership: called });
  const service = { url: 'https://other.example.net', insecureHttp: false };
  await store.write({ ...state, interface: 'cpn1', enabled: false, membership: called, service });
});

afterAll(() => rm(root, { recursive: true }));

/** `join` makes a network, and the words of `events`, `rules` and `export --new-peer` are those of the control plane. */
const ofThisHost = (await loadCommands()).filter(
  ({ name, argument }) => argument?.usage.includes('[network]') && !/^(events$|rules )/.test(name),
);

/** What a command needs in addition to the network. */
const more: Readonly<Record<string, (network: string) => readonly string[]>> = {
  set: (network) => ['set', network, '--mtu', '1380'],
  accept: (network) => ['accept', '--yes', 'edge-2', network],
};

async function run(command: Command, argv: readonly string[]): Promise<unknown> {
  const { state, config, runtime } = foldersIn(root);
  const environment = { CPN_STATE_DIR: state, CPN_CONFIG_DIR: config, CPN_RUNTIME_DIR: runtime, XDG_CONFIG_HOME: root };
  let outcome: unknown;
  await readCommandLine(argv, environment, async (found, input) => {
    expect(found.name).toBe(command.name);
    outcome = await found.run(input).catch((error: unknown) => error);
  });
  return outcome;
}

async function readFiles(): Promise<string> {
  const folder = foldersIn(root).state;
  const files = (await readdir(folder))
    .toSorted()
    .map(async (file) => [file, await readFile(join(folder, file), 'utf8')]);
  return JSON.stringify(await Promise.all(files));
}

describe('a name of two networks', () => {
  it('is tried with every command that takes one', () =>
    expect(ofThisHost.map((command) => command.name).toSorted()).toEqual(
      'accept doctor down drain export leave plan reconcile rotate-key set status up wait'.split(' '),
    ));

  it.each(ofThisHost)('is refused by $name, which changes nothing and lists both', async (command) => {
    const before = await readFiles();
    for (const named of [name, '7']) {
      const refused = await run(command, more[command.name]?.(named) ?? [command.name, named]);
      expect(refused).toBeInstanceOf(WrongUsage);
      expect((refused as WrongUsage).message).toMatch(
        /matches 2 networks: cpn0 \("cpn0\ufffd\[31m", id 7, https:\/\/cp\.example\.net\), cpn1 \(.*https:\/\/other\.example\.net\); name one by its interface$/,
      );
    }
    expect(await readFiles()).toBe(before);
  });
});
