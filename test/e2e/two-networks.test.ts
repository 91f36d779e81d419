/** Of two networks of a host one fails: each command does the other, shows both, and exits with the failure. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { joinHost } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { type Office, startOffice } from './office.ts';

let office: Office;
let host: Host;
const links = ['cpn0', 'cpn1'] as const;

beforeAll(async () => {
  office = await startOffice();
  const { controlPlane, lab } = office;
  await controlPlane.cpn(['network', 'create', '--name', 'branch', '--cidr', '10.78.0.0/24']);
  host = await lab.addHost('in-two', { address: '203.0.113.11/24' });
  for (const [network, port] of [['office', 51820] as const, ['branch', 51821] as const]) {
    const flags = ['--type', 'connector', '--endpoint', `${host.address}:${port}`, '--wait', '0'];
    await joinHost(controlPlane, host, { network, flags });
  }
}, 90_000);
afterAll(() => office?.lab.stop());

/** What keeps a network from being handled. */
const failures = {
  'its state cannot be read': async (file: string) => {
    await writeFile(file, 'damaged');
    await rm(`${file}.previous`, { force: true });
  },
  'the control plane refuses its token': async (file: string) => {
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replaceAll(/cpp_[\w-]{43}/g, `cpp_${'x'.repeat(43)}`));
  },
};

type Shown = Readonly<Record<string, unknown>>;
type Row = [args: string, codes: readonly number[], isFailed?: (shown: Shown) => boolean];
const hasError = ({ error }: Shown) => error !== undefined;

/** Commands, their exit codes in the order of {@link failures}, and which networks of their JSON have failed. */
const commands: readonly Row[] = [
  ['reconcile', [1, 4], hasError],
  ['status', [1, 0], ({ state }) => state === 'degraded'],
  ['status --check', [3, 3], ({ state, sync }) => state === 'degraded' || (sync as Shown)?.refused !== undefined],
  ['plan', [1, 0], hasError],
  ['up', [1, 0], hasError],
  ['doctor', [3, 3]],
  ['wait --timeout 0', [3, 0], ({ ready }) => ready === false],
  ['drain --yes --timeout 5', [1, 4], ({ withdrawn }) => (withdrawn as unknown[]).length === 0],
  ['drain --undo', [1, 4]],
  ['rotate-key --yes', [1, 4], ({ rotated }) => rotated === false],
  ['set --mtu 1380', [2, 2]],
  ['down', [2, 2]],
  ['leave --yes', [2, 2]],
  ['down --all', [1, 0]],
];

const failing = Object.keys(failures).flatMap((failure, at) =>
  links.map((link) => [failure as keyof typeof failures, link, at] as const),
);

describe.each(failing)('where the failure is "%s", of %s', (failure, link, at) => {
  const file = () => path(host.stateDir, `${link}.json`);
  let before: string;
  beforeAll(async () => {
    await host.cpn(['up'], { allowFailure: true });
    before = await readFile(file(), 'utf8');
    await failures[failure](file());
  });
  afterAll(async () => {
    await writeFile(file(), before);
    await host.cpn(['reconcile'], { allowFailure: true });
  });

  it.each<Row>(commands)('%s exits with one of %j', async (args, codes, isFailed) => {
    const { exitCode, stdout } = await host.cpn([...args.split(' '), '--json'], { allowFailure: true });
    expect(exitCode).toBe(codes[at]);
    if (isFailed === undefined) return;
    const shown: Shown[] = JSON.parse(stdout).networks;
    expect(shown.map((each) => each.interface).sort()).toEqual(links);
    const wanted = codes[at] === 0 && args !== 'plan' ? [] : [link];
    expect([args, shown.filter(isFailed).map((each) => each.interface)]).toEqual([args, wanted]);
  });

  it('the other network was taken down by the last of them', async () => {
    const other = links.find((each) => each !== link) ?? '';
    expect((await host.exec(['ip', 'link', 'show', other], { allowFailure: true })).exitCode).not.toBe(0);
  });
});
