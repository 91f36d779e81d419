import { expect, it } from 'vitest';
import { findOwnEndpoint } from '../../../src/app/networks/own-endpoint.ts';
import type { Tools } from '../../../src/app/tools.ts';
import { parseAddress } from '../../../src/core/net/cidr.ts';

/** The endpoint that `auto` finds on a host that reaches the control plane from this address. */
function find(url: string, source: string, listenPort: number | null = null) {
  const host = { sourceAddress: async () => parseAddress(source), resolve: async () => [parseAddress('203.0.113.1')] };
  const request = { endpoint: 'auto', service: { url }, options: { listenPort } };
  return findOwnEndpoint({ host } as unknown as Tools, request as unknown as Parameters<typeof findOwnEndpoint>[1]);
}

it('auto is the address from which a host reaches the control plane', async () => {
  expect(await find('https://cp.example.net', '203.0.113.22')).toEqual({ host: '203.0.113.22', port: 51820 });
  expect(await find('http://10.1.2.3:8787', '10.1.9.9')).toEqual({ host: '10.1.9.9', port: 51820 });
});

it('auto is refused behind NAT, where peers cannot dial that address', async () => {
  await expect(find('https://cp.example.net', '192.168.1.10')).rejects.toThrow(
    '--endpoint auto found 192.168.1.10, a private address, while cp.example.net is a public one',
  );
});

it('auto has the listen port that was chosen', async () => {
  expect(await find('https://cp.example.net', '203.0.113.22', 40_000)).toMatchObject({ port: 40_000 });
});

it.each(['169.254.7.7', '127.0.0.1'])('auto is refused for an address that no peer can dial: %s', async (source) => {
  await expect(find('http://10.1.2.3:8787', source)).rejects.toThrow(
    `found no address of this host that peers can dial (towards 10.1.2.3: ${source})`,
  );
});
