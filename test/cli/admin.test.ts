import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AdminService, Network } from '../../src/api/admin-service.ts';
import { findTheNetwork, openAdminAt, readWholeNetwork } from '../../src/cli/admin.ts';
import { apiFlags } from '../../src/cli/input/flags.ts';
import { Input } from '../../src/cli/input/input.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import type { ServiceAddress } from '../../src/core/net/service-address.ts';
import { writeLogin } from '../../src/store/login-file.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-admin-'));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

const [url, other] = ['https://cp.example.net', 'https://other.example.net'];
const proxy = { url: 'http://proxy.example:3128', credentials: null, from: '--proxy' };
/** What the login has in addition to the URL of its control plane. */
const facts = { proxy, listener: 1001, authorities: ['the CA of the login'] } as const;
const plain = { insecureHttp: false };

/** The address at which a command with these flags and variables uses the stored login, or another token. */
async function open(given: object, variables: Readonly<Record<string, string>> = {}): Promise<ServiceAddress> {
  await writeLogin(join(folder, 'cpn'), { service: { url, ...plain, ...facts }, token: new Secret('first') });
  const environment = { XDG_CONFIG_HOME: folder, ...variables };
  return (await openAdminAt(new Input({ ...given }, apiFlags, environment))).address;
}

describe('the control plane of an administrator', () => {
  it('is that of the login, with its proxy, listener and CAs', async () => {
    for (const given of [{}, { api: url }, { api: `${url}/` }])
      expect(await open(given)).toEqual({ url, ...plain, ...facts });
  });

  it('that is another one does not get the token of the login', async () => {
    await expect(open({ api: other })).rejects.toThrow(`not logged in at ${other}`);
    await expect(open({}, { CPN_API: other })).rejects.toThrow(`not logged in at ${other}`);
    await expect(open({}, { CPN_API_URL: other })).rejects.toThrow(`not logged in at ${other}`);
  });

  it('that is another one, with a token of its own, has nothing of the login', async () => {
    expect(await open({ api: other }, { CPN_API_TOKEN: 'second' })).toEqual({ url: other, ...plain });
  });

  it('has the flags of the command in place of what is stored', async () => {
    expect(await open({ proxy: 'none' })).toEqual({ url, ...plain, ...facts, proxy: 'none' });
    const { authorities: _, ...others } = facts;
    expect(await open({ 'ca-file': 'none' })).toEqual({ url, ...plain, ...others });
  });

  it('has the proxy of the environment only where none is stored', async () => {
    const variables = { CPN_API_TOKEN: 'second', HTTPS_PROXY: 'http://env.example:8080' };
    expect((await open({ api: url }, variables)).proxy).toEqual(proxy);
    expect((await open({ api: other }, variables)).proxy).toMatchObject({ url: 'http://env.example:8080' });
  });

  it('is missing without a login and without a flag', async () => {
    const input = new Input({}, apiFlags, { XDG_CONFIG_HOME: folder });
    await expect(openAdminAt(input)).rejects.toThrow('not logged in; run "cpn login --api URL"');
  });
});

describe('the networks of a control plane', () => {
  const named = (id: number, name: string) => ({ id, name });
  const serve = (networks: object[], peers: object[] = [], out: object[] = []) =>
    ({
      listNetworks: async () => networks,
      readNetwork: async (id: number) => ({ id, name: 'office', peers }),
      listPeersOut: async () => out,
    }) as unknown as AdminService;

  it('are one, which need not be named, or it must be', async () => {
    expect(await findTheNetwork(serve([named(7, 'office')]), undefined)).toBe(7);
    await expect(findTheNetwork(serve([]), undefined)).rejects.toThrow('there is no network yet');
    const two = serve([named(7, 'office'), named(8, 'shop')]);
    await expect(findTheNetwork(two, undefined)).rejects.toThrow(
      'there are 2 networks; name one: "office" (7), "shop" (8)',
    );
    expect(await findTheNetwork(two, 'shop')).toBe(8);
  });

  it('have their suspended and expired peers too, each once, by their ids', async () => {
    const peers = [{ id: 10 }, { id: 2 }, { id: 3 }] as unknown as Network['peers'];
    const out = [
      { id: 9, suspended_at: 'x' },
      { id: 3, expires_at: 'x' },
    ];
    const whole = await readWholeNetwork(serve([named(7, 'office')], [...peers], out), 'office');
    expect(whole.peers).toEqual([{ id: 2 }, { id: 3, expires_at: 'x' }, { id: 9, suspended_at: 'x' }, { id: 10 }]);
  });
});
