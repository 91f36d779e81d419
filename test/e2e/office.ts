import { type ControlPlane, type Joined, joinHost, startControlPlane } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';

/** A lab with a control plane and the network `office`, 10.77.0.0/24 by default, with the route 192.168.50.0/24. */
export interface Office {
  readonly lab: Lab;
  readonly controlPlane: ControlPlane;
  /** The flags that name the control plane to `join`. */
  readonly api: readonly string[];
}

/** The settings of an office. */
interface OfficeOptions {
  readonly cidr?: string;
  /** Flags of its control plane. */
  readonly flags?: readonly string[];
}

/** Starts an office. Its hosts have command servers. */
export async function startOffice({ cidr = '10.77.0.0/24', flags = [] }: OfficeOptions = {}): Promise<Office> {
  const lab = await Lab.start({ commandServers: true });
  const controlPlane = await startControlPlane(lab, '203.0.113.1', flags);
  await controlPlane.cpn(['network', 'create', '--name', 'office', '--cidr', cidr, '--route', '192.168.50.0/24']);
  return { lab, controlPlane, api: ['--api', controlPlane.url, '--insecure-http'] };
}

/** Joins a host to the office with a key of its own, without waiting for a handshake. */
export async function join(office: Office, host: Host, ...flags: string[]): Promise<Joined> {
  return joinHost(office.controlPlane, host, { network: 'office', flags: ['--wait', '0', ...flags] });
}

/** How to ping where there may be no session yet: a handshake without an answer is tried again after 5 s, and the packet waits for it. */
export const patiently = { waitMs: 8000 };

/** The changes that `cpn plan` prints for a host, and its exit code. */
export async function plan(host: Host): Promise<{ exitCode: number | null; changes: unknown[] }> {
  const { stdout, exitCode } = await host.cpn(['plan', '--json'], { allowFailure: true });
  return {
    exitCode,
    changes: JSON.parse(stdout).networks.flatMap((network: { changes: unknown[] }) => network.changes),
  };
}

/** The first network in `cpn status --json`. */
export async function status(host: Host) {
  return JSON.parse((await host.cpn(['status', '--json'])).stdout).networks[0];
}
