import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Office, plan, startOffice } from '../e2e/office.ts';
import { REPOSITORY } from '../lab/built-program.ts';
import { makeKey } from '../lab/control-plane.ts';
import type { ExecOptions, Host } from '../lab/host.ts';
import type { Outcome } from '../lab/process.ts';
import { addEdge, addMember, edgeAddress } from './members.ts';
import { injecting } from './record.ts';
import { whilePinging } from './while-pinging.ts';

let office: Office;
let edge: Host;

beforeAll(async () => {
  office = await startOffice();
  edge = await addEdge(office);
});

afterAll(() => office?.lab.stop());

it('45: an interface of the same name in another network namespace of the host is left alone', () =>
  injecting(45, async (row) => {
    const { host } = await addMember(office, edge, 'divided');
    const inside = await addNamespace(host);
    const input = await makeKey(office.controlPlane, 'office', 'second');
    const cpn = async (...args: string[]) => {
      return inside([path(REPOSITORY, 'dist/cpn.js'), ...args], { input, allowFailure: true });
    };
    const join = ['join', '-', ...office.api, '--wait', '0'];
    const losses = await whilePinging(host, edgeAddress, async () => {
      row.injected('a join as cpn0 while another cpn0 exists');
      const { exitCode, stderr } = await cpn(...join, '--interface', 'cpn0');
      // In user space WireGuard's control socket is one for all network namespaces; in the kernel there is none.
      if (exitCode !== 0) {
        expect(stderr).toMatch(/cpn0\.sock" exists and was not made by cpn; choose another with --interface/);
        expect(exitCode).toBe(2);
        row.detected();
        // The key is unused.
        expect(await cpn(...join, '--interface', 'cpn1')).toMatchObject({ exitCode: 0 });
      }
      row.repaired();
      await edge.cpn(['reconcile']);
      expect((await inside(['ping', '-n', '-c', '1', '-W', '8', edgeAddress])).stdout).toContain(' 0% packet loss');
      expect(await cpn('leave', '--yes')).toMatchObject({ exitCode: 0 });
    });
    row.lost(losses);
    expect(losses.lost).toBe(0);
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
  }));

/** Another network namespace of a host, with a card of its own on the wan, and folders of its own for the program; runs commands there. */
async function addNamespace(host: Host): Promise<(argv: readonly string[], options?: ExecOptions) => Promise<Outcome>> {
  const holder = host.spawn(['unshare', '--net', 'sh', '-c', 'echo "ready $$"; exec cat'], { holdInput: true });
  const [, pid] = await holder.waitForLine(/^ready (\d+)$/);
  await office.lab.wan.port('eth0').insert(holder.pid ?? 0);
  const env = Object.fromEntries(
    ['CONFIG', 'STATE', 'RUNTIME'].map((name) => [`CPN_${name}_DIR`, path(host.folder, `second-${name}`)]),
  );
  const inside = (argv: readonly string[], options: ExecOptions = {}) =>
    host.exec(['nsenter', `--net=/proc/${pid}/ns/net`, ...argv], { ...options, env, timeoutMs: 30_000 });
  await inside(['sh', '-c', 'ip link set lo up; ip link set eth0 up; ip address add 203.0.113.99/24 dev eth0']);
  return inside;
}
