import { afterAll, beforeAll, describe, it } from 'vitest';
import { repairing } from './drift.ts';
import { answers, type DriftLab, lan, startDriftLab } from './drift-lab.ts';

let lab: DriftLab;

beforeAll(async () => {
  lab = await startDriftLab({ connector: 'touched' });
});

afterAll(() => lab?.office.lab.stop());

/** Whether both peers and the LAN answer. */
async function allWorks(): Promise<boolean> {
  const { kept, untouched } = lab;
  return (await lab.reachesLan()) && (await answers(kept.host, untouched.joined.address));
}

const routeAdded = `add route ${lan}: a peer serves it`;

/** The changes that make an interface, without packet rules and forwarding, which outlive it. */
function everything(): string[] {
  const { kept, touched, untouched } = lab;
  return [
    'add interface cpn0: the interface does not exist',
    ...[touched, untouched].map(({ joined }) => `add peer ${joined.public_key}: a peer of the network is missing`),
    `add address ${kept.joined.address}/24: the peer's address is not on the interface`,
    routeAdded,
  ];
}

/** Kills the WireGuard of this host by its pid; where it is the kernel's own, does what that would do. */
const killWireguardGo = `
for process in /proc/[0-9]*; do
  [ "$(cat "$process/comm")" != wireguard-go ] || exec kill -KILL "\${process#/proc/}"
done
ip -d link show cpn0 | grep -qw wireguard && exec ip link del cpn0
`;

describe('drift of the interface as a whole is repaired at the event of the kernel', () => {
  it('27: it is deleted', () =>
    repairing(27, lab, {
      how: 'ip link del',
      script: 'ip link del cpn0',
      changes: everything(),
      works: allWorks,
      hitsAll: true,
    }));

  it('28: wireguard-go is killed', () =>
    repairing(28, lab, {
      how: 'kill -KILL; ip link del where it is none',
      script: killWireguardGo,
      changes: everything(),
      works: allWorks,
      hitsAll: true,
    }));
});

describe('drift of the settings of WireGuard is repaired, without an event', () => {
  it('34: the private key is changed', () =>
    repairing(34, lab, {
      how: 'wg set private-key',
      script: 'wg genkey | wg set cpn0 private-key /dev/stdin',
      changes: ['update interface cpn0: the public key differs'],
      works: allWorks,
      hitsAll: true,
    }));

  it('34: the private key is cleared', () =>
    repairing(34, lab, {
      how: 'wg set private-key /dev/null',
      script: 'wg set cpn0 private-key /dev/null',
      changes: ['update interface cpn0: the public key differs'],
      works: allWorks,
      hitsAll: true,
    }));

  it('48: the listen port is changed', () =>
    repairing(48, lab, {
      how: 'wg set listen-port',
      script: 'wg set cpn0 listen-port 51999',
      changes: ['update interface cpn0: the listen port differs'],
      works: allWorks,
      hitsAll: true,
    }));

  it('49: a mark is set on the tunnel', () =>
    repairing(49, lab, {
      how: 'wg set fwmark',
      script: 'wg set cpn0 fwmark 0x42',
      changes: ['update interface cpn0: the mark differs'],
      works: allWorks,
    }));
});
