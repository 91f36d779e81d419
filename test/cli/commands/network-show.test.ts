import { afterEach, expect, it, vi } from 'vitest';
import { showNetwork } from '../../../src/cli/commands/network.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { startForeignService } from '../../plain/foreign-service.ts';

afterEach(() => vi.restoreAllMocks());

async function show(flags: Record<string, unknown>, relay?: number, fields: object = {}) {
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      written[name] += String(text);
      return true;
    });
  }
  const service = await startForeignService();
  service.peers = [...service.peers, { peer_id: 'p/3', hostname: 'odd\u001b[2J', pubkey: 'no', ip: '10.77.0.3' }];
  service.network = { ...service.network, ...fields, ...(relay !== undefined && { relay }) };
  const environment = { CPN_API_TOKEN: 'token', NO_COLOR: '1' };
  await showNetwork.run(new Input({ api: service.url, network: 'office', ...flags }, showNetwork.flags, environment));
  return written;
}

it('a network is shown with the peers that are skipped, by name and reason', async () => {
  const { stdout, stderr } = await show({});
  expect(stdout).toContain('gateway');
  expect(stderr).toContain('peer odd\ufffd[2J (p/3) is skipped: pubkey is not a WireGuard public key');
});

it('JSON has the skipped peers too, by name and reason', async () => {
  const { peers, skipped_peers } = JSON.parse((await show({ json: true })).stdout);
  expect(peers).toHaveLength(1);
  expect(skipped_peers).toEqual([
    { id: 'p/3', name: 'odd\u001b[2J', reason: expect.stringContaining('pubkey is not a WireGuard public key') },
  ]);
});

it('the relay is shown by its name, and none of a service that names none', async () => {
  const line = 'relay between hosts without an endpoint';
  expect((await show({}, 9001)).stdout).toContain(`${line}: gateway\n`);
  expect((await show({}, 7)).stdout).not.toContain(line);
  expect((await show({})).stdout).not.toContain(line);
  expect(JSON.parse((await show({ json: true }, 9001)).stdout).relay).toBe(9001);
});

it('domains behind routes are shown, and none of a service that has none', async () => {
  const domains = ['corp.example', 'xn--bcher-kva.example'];
  const route_dns = [{ route: '192.168.50.0/24', dns_servers: ['192.168.50.53', '192.168.50.54'], domains }];
  expect((await show({}, undefined, { route_dns })).stdout).toContain(
    '\ndomains behind 192.168.50.0/24: corp.example, xn--bcher-kva.example; DNS: 192.168.50.53, 192.168.50.54\n',
  );
  expect(JSON.parse((await show({ json: true }, undefined, { route_dns })).stdout).route_dns).toEqual(route_dns);
  expect((await show({})).stdout).not.toContain('domains');
});
