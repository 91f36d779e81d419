import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Drift, repairing } from './drift.ts';
import { addMember, answers, type DriftLab, type Member, meet, startDriftLab } from './drift-lab.ts';

let lab: DriftLab;
/** One more peer that drifts: repairs of one peer would be spaced out. */
let other: Member;

beforeAll(async () => {
  lab = await startDriftLab({ connector: 'touched' });
  other = await addMember(lab.office, 'other', 14);
  await lab.daemon.awaitLog('the other peer', ({ msg }) => msg === 'change applied');
  await meet(lab.kept, other);
}, 120_000);

afterAll(() => lab?.office.lab.stop());

const stranger = 'c3RyYW5nZXJzdHJhbmdlcnN0cmFuZ2Vyc3RyYW5nZXI=';

/** A change of a peer by `wg set`; after its repair the peer answers, and the kernel's table is as before. */
async function repairingPeer(number: number, { joined }: Member, what: string, drift: Pick<Drift, 'changes'>) {
  const { host } = lab.kept;
  const before = await readSettings();
  await repairing(number, lab, {
    how: `wg set peer ${what.replace(/ \/dev\S+| \S*\/\d+\S*/g, '')}`,
    script: `wg genpsk | wg set cpn0 peer ${joined.public_key} ${what}`,
    works: () => answers(host, joined.address),
    ...drift,
  });
  expect(await readSettings()).toEqual(before);
}

/** Keys, preshared keys, allowed IPs and keepalives of all peers. */
async function readSettings(): Promise<string[]> {
  const fields = ['peers', 'preshared-keys', 'allowed-ips', 'persistent-keepalive'];
  const script = fields.map((field) => `wg show cpn0 ${field}`).join('; ');
  return (await lab.kept.host.exec(['sh', '-c', script])).stdout.split('\n').sort();
}

const differs = ({ joined }: Member, what: string) => ({
  changes: [`update peer ${joined.public_key}: ${what} differ`],
});

describe('drift of a peer is repaired, without an event', () => {
  it('29: a peer is removed', () =>
    repairingPeer(29, lab.touched, 'remove', {
      changes: [`add peer ${lab.touched.joined.public_key}: a peer of the network is missing`],
    }));

  it('30: a peer is added, which takes the address of another', () =>
    repairingPeer(
      30,
      { ...lab.touched, joined: { ...lab.touched.joined, public_key: stranger } },
      `allowed-ips ${lab.touched.joined.address}/32`,
      {
        changes: [...differs(lab.touched, 'allowed IPs').changes, `remove peer ${stranger}: not a peer of the network`],
      },
    ));

  it('43: a preshared key is set where none is wanted', () =>
    repairingPeer(43, other, 'preshared-key /dev/stdin', differs(other, 'preshared key')));

  it('43: a keepalive is set where none is wanted', () =>
    repairingPeer(43, other, 'persistent-keepalive 7', differs(other, 'keepalive')));
});
