import { describe, expect, it } from 'vitest';
import type { AdminService, EnrollmentRequest, PeerService } from '../../src/api/service.ts';
import { type Device, enrollDevice } from '../../src/app/enroll-device.ts';
import type { Tools } from '../../src/app/tools.ts';
import { presharedKeyOf, tagOf } from '../../src/core/crypto/network-secret.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { BadReply, Refused, WrongUsage } from '../../src/core/errors/index.ts';
import type { NetworkMap, Peer } from '../../src/core/map/model.ts';
import { dialled, options, peer, prefix } from '../core/samples.ts';
import { Desk, joinedTo, mapAt } from './desk.ts';

const connector = peer(2, { type: 'connector', endpoint: dialled(2) });
const named = peer(3, { endpoint: { host: 'edge.example.net', port: 51820 } });
const networkSecret = new Secret(Buffer.alloc(48, 'ab').toString('base64'));
const refusal = new Refused(403, 'enrolling', 'not you', 'ask an admin');

/** A control plane that takes the device in as peer 9, or fails; tells what was asked of it. */
async function startService(map: (self: Peer) => NetworkMap, failure: Error | null = null) {
  const desk = await Desk.with(joinedTo(mapAt('1', [])));
  const asked: unknown[] = [];
  const enrolled: EnrollmentRequest[] = [];
  const warnings: string[] = [];
  const admin = {
    createKey: async (...key: unknown[]) => {
      asked.push(['createKey', ...key]);
      return { id: 4, enrollment_token: 'cpn_once' };
    },
    revokeKey: async (...key: unknown[]) => void asked.push(['revokeKey', ...key]),
    removePeer: async (...gone: unknown[]) => void asked.push(['removePeer', ...gone]),
  } as unknown as AdminService;
  const service = {
    enroll: async (request: EnrollmentRequest) => {
      enrolled.push(request);
      if (failure) throw failure;
      const self = peer(9, { name: request.name, publicKey: request.publicKey, type: request.type });
      return { peer: { id: 9, name: request.name, address: self.address }, map: map(self), accessToken: null };
    },
  } as unknown as PeerService;
  const tools: Tools = { ...desk.tools, connect: async () => service, warn: (text) => warnings.push(text) };
  const address = { url: 'https://cp.example.net', insecureHttp: false };
  const request = { admin, address, network: 7, name: 'phone', link: 'wg0', options, networkSecret: null };
  return { desk, tools, request, asked, enrolled, warnings };
}

const around = (self: Peer) => mapAt('1', [connector, named, self]);

describe('enrolling a device', () => {
  it('gives it a tunnel to the peers with an endpoint, and stores nothing', async () => {
    const { desk, tools, request, asked, enrolled } = await startService(around);
    // The device may be where there is no IPv6.
    desk.names['edge.example.net'] = ['2001:db8::3' as never, dialled(3).host as never];
    const before = await tools.store.list();
    let device: Device | undefined;
    await enrollDevice(tools, request, async (each) => {
      device = each;
    });
    const { config, keyPair } = device?.desired ?? {};
    expect(device).toMatchObject({ id: 9, name: 'phone' });
    expect(enrolled).toMatchObject([
      { name: 'phone', type: 'admin_device', publicKey: keyPair?.publicKey, endpoint: null },
    ]);
    expect(enrolled[0]?.token.reveal()).toBe('cpn_once');
    expect(config?.address).toEqual({ address: '10.77.0.9', length: 24 });
    expect(config?.peers).toMatchObject([
      { publicKey: connector.publicKey, endpoint: dialled(2), keepalive: 25, presharedKey: null },
      { publicKey: named.publicKey, endpoint: dialled(3), keepalive: 25 },
    ]);
    expect(config?.peers[0]?.allowedIps).toContain('192.168.50.0/24');
    expect(asked).toEqual([
      ['createKey', 7, { name: 'phone', max_uses: 1, expires_in_hours: 1, peer_types: ['admin_device'] }],
    ]);
    expect(await tools.store.list()).toEqual(before);
  });

  it('applies its options, and shares the network secret', async () => {
    const exit = (self: Peer) => mapAt('1', [connector, self], { routes: [prefix('0.0.0.0/0')] });
    const { tools, request, enrolled } = await startService(exit);
    const full = { ...options, allowRoutes: [prefix('0.0.0.0/0')] };
    await enrollDevice(tools, { ...request, options: full, networkSecret }, async ({ desired }) => {
      const [only] = desired.config.peers;
      expect(only?.allowedIps).toContain('0.0.0.0/0');
      const shared = presharedKeyOf(networkSecret, 7, desired.keyPair.publicKey, connector.publicKey);
      expect(only?.presharedKey?.reveal()).toBe(shared.reveal());
    });
    expect(enrolled[0]?.secretTag).toBe(tagOf(networkSecret));
    await enrollDevice(tools, request, async ({ desired }) => {
      expect(desired.config.peers[0]?.allowedIps).not.toContain('0.0.0.0/0');
      expect(desired.report).toMatchObject([{ prefix: '0.0.0.0/0', state: 'refused' }]);
    });
    expect.assertions(5);
  });

  it('names the peer whose endpoint does not resolve', async () => {
    const { tools, request, warnings } = await startService(around);
    await enrollDevice(tools, request, async () => {});
    expect(warnings).toEqual([expect.stringContaining('edge.example.net does not resolve')]);
  });

  it('removes the peer when the delivery of its keys fails, and fails with that error in any case', async () => {
    const { tools, request, asked, warnings } = await startService((self) => mapAt('1', [connector, self]));
    const failure = new WrongUsage('too small');
    const deliver = async () => {
      throw failure;
    };
    await expect(enrollDevice(tools, request, deliver)).rejects.toBe(failure);
    expect(asked.slice(1)).toEqual([['removePeer', 7, 9]]);
    const stubborn = { ...request.admin, removePeer: () => Promise.reject(refusal) };
    await expect(enrollDevice(tools, { ...request, admin: stubborn }, deliver)).rejects.toBe(failure);
    expect(warnings).toEqual([expect.stringContaining('type: cpn peer remove 7 9')]);
  });

  it('removes the peer when the control plane does not list it', async () => {
    const { tools, request, asked } = await startService(() => mapAt('1', [connector]));
    await expect(enrollDevice(tools, request, async () => {})).rejects.toBeInstanceOf(BadReply);
    expect(asked.slice(1)).toEqual([['removePeer', 7, 9]]);
  });

  it('revokes the key when no peer joined with it', async () => {
    const { tools, request, asked } = await startService(around, refusal);
    await expect(enrollDevice(tools, request, async () => {})).rejects.toBe(refusal);
    expect(asked.slice(1)).toEqual([['revokeKey', 7, 4]]);
  });
});
