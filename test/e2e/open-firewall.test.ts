import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeKey } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { addedRules, startUfw } from '../lab/ufw.ts';
import { join, type Office, patiently, startOffice, status } from './office.ts';

let office: Office;
/** With an endpoint, and ufw as it comes. */
let edge: Host;
/** Without an endpoint: it must reach the peers that it dials. */
let laptop: Host;

beforeAll(async () => {
  office = await startOffice();
  edge = await office.lab.addHost('edge', { address: '203.0.113.11/24' });
  laptop = await office.lab.addHost('laptop', { address: '203.0.113.12/24' });
  await startUfw(edge);
}, 60_000);

afterAll(() => office?.lab.stop());

/** The stderr of a join. */
const joinLoudly = async (host: Host, ...flags: string[]) => {
  const key = await makeKey(office.controlPlane, 'office', host.name);
  return (await host.cpn(['join', '-', ...office.api, '--wait', '0', ...flags], { input: key })).stderr;
};

const ports = async (host: Host) => {
  const { stdout } = await host.cpn(['doctor', '--json'], { allowFailure: true });
  const findings: { check: string; verdict: string; found: string; remedy: string | null }[] =
    JSON.parse(stdout).findings;
  return findings.filter(({ check, verdict }) => check === 'ports' && verdict !== 'ok');
};

const explain = async (host: Host, name: string) => {
  const { stdout } = await host.cpn(['explain', name, '--json'], { allowFailure: true });
  const { stops_at, checks } = JSON.parse(stdout);
  return { stops_at, ...checks.find(({ check }: { check: string }) => check === 'firewall') };
};

describe('a host whose own ufw drops WireGuard', () => {
  const cause = 'ufw drops UDP to port 51820 (nft table ip filter, policy drop of chain INPUT)';
  const remedy = '"cpn set cpn0 --open-firewall" or "ufw allow 51820/udp" lets it in';
  const found = `${cause}: other hosts cannot start a session with this one`;
  const sentence = `${found}; ${remedy}`;

  it('is reported when it joins, in status, doctor and explain', async () => {
    expect(await joinLoudly(edge, '--endpoint', '203.0.113.11:51820')).toContain(sentence);
    expect(await status(edge)).toMatchObject({
      state: 'degraded',
      warnings: [sentence],
      inbound: { state: 'dropped', by: 'ufw', port: 51820, table: 'ip filter', remedy: 'ufw allow 51820/udp' },
    });
    expect(await ports(edge)).toMatchObject([{ verdict: 'problem', found, remedy }]);
    // A host that no peer dials drops nothing that it needs.
    await startUfw(laptop);
    await join(office, laptop);
    expect(await ports(laptop)).toEqual([]);
    await edge.cpn(['reconcile']);
    expect(await explain(edge, 'laptop')).toMatchObject({
      stops_at: 'firewall',
      ok: false,
      detail: `${cause}: laptop cannot start a session with this host, which cannot dial it; ${remedy}`,
    });
    expect(await laptop.ping('10.77.0.1')).toMatchObject({ received: 0 });
  });

  it('is healthy once the remedy is typed', async () => {
    await edge.exec(['ufw', 'allow', '51820/udp']);
    const { inbound, warnings = [] } = await status(edge);
    expect({ inbound, warnings }).toEqual({ inbound: undefined, warnings: [] });
    expect(await ports(edge)).toEqual([]);
    await laptop.ping('10.77.0.1', patiently);
    expect((await explain(edge, 'laptop')).ok).not.toBe(false);
  });
});

describe('--open-firewall', () => {
  it('has ufw let in the listen port alone, follows it, and closes it when the host leaves', async () => {
    const host = await office.lab.addHost('opened', { address: '203.0.113.13/24' });
    await startUfw(host);
    await host.exec(['ufw', 'allow', '22/tcp']);
    await join(office, host, '--endpoint', '203.0.113.13:51820', '--open-firewall');
    const ours = (port: number) => `ufw allow ${port}/udp comment 'cpn_cpn0'`;
    expect(await addedRules(host)).toEqual(['ufw allow 22/tcp', ours(51820)]);
    expect(await ports(host)).toEqual([]);
    const dry = await host.cpn(['set', '--no-open-firewall', '--dry-run'], { allowFailure: true });
    expect(dry.stdout).toContain('- firewall ufw');
    await host.cpn(['set', '--endpoint', '203.0.113.13:51999']);
    expect(await addedRules(host)).toEqual(['ufw allow 22/tcp', ours(51999)]);
    await host.cpn(['down']);
    expect(await addedRules(host)).toEqual(['ufw allow 22/tcp']);
    await host.cpn(['up']);
    expect(await addedRules(host)).toEqual(['ufw allow 22/tcp', ours(51999)]);
    await host.cpn(['leave', '--yes']);
    expect(await addedRules(host)).toEqual(['ufw allow 22/tcp']);
  });

  it('leaves alone a rule that an operator put in the place of its own', async () => {
    const host = await office.lab.addHost('replaced', { address: '203.0.113.14/24' });
    await startUfw(host);
    await join(office, host, '--endpoint', '203.0.113.14:51820', '--open-firewall');
    const replace = async () => {
      await host.exec(['ufw', '--force', 'delete', 'allow', '51820/udp']);
      await host.exec(['ufw', 'allow', '51820/udp']);
    };
    await replace();
    await host.cpn(['set', '--no-open-firewall']);
    expect(await addedRules(host)).toEqual(['ufw allow 51820/udp']);
    await host.exec(['ufw', '--force', 'delete', 'allow', '51820/udp']);
    await host.cpn(['set', '--open-firewall']);
    await replace();
    await host.cpn(['leave', '--yes']);
    expect(await addedRules(host)).toEqual(['ufw allow 51820/udp']);
  });

  it('leaves alone a rule that was there before, and is refused without a port that others dial', async () => {
    const before = await addedRules(edge);
    await edge.cpn(['set', '--open-firewall']);
    await edge.cpn(['set', '--no-open-firewall']);
    expect(await addedRules(edge)).toEqual(before);
    const { stderr, exitCode } = await laptop.cpn(['set', '--open-firewall'], { allowFailure: true });
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringContaining('add --endpoint HOST:PORT or --listen-port PORT'),
    });
  });
});
