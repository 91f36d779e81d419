import { describe, expect, it } from 'vitest';
import type { AdminService, Network } from '../../../src/api/admin-service.ts';
import type { EnrollmentRequest, PeerService } from '../../../src/api/service.ts';
import {
  type DeviceDelivery,
  type DeviceRequest,
  type EnrolledDevice,
  enrollDevice,
} from '../../../src/app/export/enroll-device.ts';
import type { Tools } from '../../../src/app/tools.ts';
import { keyPairOf } from '../../../src/core/crypto/keys.ts';
import { presharedKeyOf, tagOf } from '../../../src/core/crypto/network-secret.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Refused, Unreachable, WrongUsage } from '../../../src/core/errors/index.ts';
import type { NetworkMap, Peer } from '../../../src/core/map/model.ts';
import { formatEndpoint } from '../../../src/core/net/endpoint.ts';
import { dialled, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const connector = peer(2, { type: 'connector', endpoint: dialled(2) });
const named = peer(3, { endpoint: { host: 'edge.example.net', port: 51820 } });
const networkSecret = new Secret(Buffer.alloc(48, 'ab').toString('base64'));
const refusal = new Refused(403, 'enrolling', 'not you', 'ask an admin');

/** A control plane that takes the device in as peer 9, or fails; tells what was asked of it. */
async function startService(map: (self: Peer) => NetworkMap, failure: Error | null = null) {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('1', [])));
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
    // What was enrolled is listed, also where its reply was lost.
    readNetwork: async () => ({ ...listed, peers: enrolled.map((each) => toListed(selfOf(each))) }),
  } as unknown as AdminService;
  const service = {
    enroll: async (request: EnrollmentRequest) => {
      enrolled.push(request);
      if (failure) throw failure;
      const self = selfOf(request);
      return { peer: { id: 9, name: request.name, address: self.address }, map: map(self), accessToken: null };
    },
  } as unknown as PeerService;
  const tools: Tools = { ...simulated.tools, connect: async () => service, warn: (text) => warnings.push(text) };
  const address = { url: 'https://cp.example.net', insecureHttp: false };
  const names = { name: 'phone', link: 'wg0' };
  const network = { ...listed, routes: [...map(connector).routes], peers: [connector, named].map(toListed) };
  const request: DeviceRequest = { admin, address, network, ...names, options, networkSecret: null, connector: null };
  return { simulated, tools, request, asked, enrolled, warnings };
}

const selfOf = ({ name, publicKey, type }: EnrollmentRequest) => peer(9, { name, publicKey, type });

/** A peer and a network as an administrator reads them. */
const toListed = ({ id, name, type, publicKey, address, endpoint }: Peer): Network['peers'][number] => ({
  ...{ id, name, peer_type: type, public_key: publicKey, address, endpoint: endpoint && formatEndpoint(endpoint) },
  created_at: null,
});
const listed: Network = {
  ...{ id: 7, name: 'office', description: '', private_cidr: '10.77.0.0/24', vpn_type: 'wireguard', revision: 1 },
  ...{ routes: ['192.168.50.0/24'], peers: [] },
};

const deliverTo = (handOver: DeviceDelivery['handOver']): DeviceDelivery => ({ check: async () => {}, handOver });
const ignore = deliverTo(async () => {});

const around = (self: Peer) => mapAt('1', [connector, named, self]);

describe('enrolling a device', () => {
  it('gives it a tunnel to the peers with an endpoint, and stores nothing', async () => {
    const { simulated, tools, request, asked, enrolled } = await startService(around);
    // The device may be where there is no IPv6.
    simulated.dnsRecords['edge.example.net'] = ['2001:db8::3' as never, dialled(3).host as never];
    const before = await tools.store.list();
    let device: EnrolledDevice | undefined;
    await enrollDevice(
      tools,
      request,
      deliverTo(async (each) => {
        device = each;
      }),
    );
    const { config } = device ?? {};
    const own = keyPairOf(config?.privateKey as Secret);
    expect(device).toMatchObject({ id: 9, name: 'phone' });
    expect(enrolled).toMatchObject([{ name: 'phone', type: 'admin_device', publicKey: own.publicKey, endpoint: null }]);
    expect(enrolled[0]?.token.reveal()).toBe('cpn_once');
    expect(config?.address).toEqual({ address: '10.77.0.9', length: 32 });
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
    await enrollDevice(
      tools,
      { ...request, options: full, networkSecret },
      deliverTo(async ({ config }) => {
        const [only] = config.peers;
        expect(only?.allowedIps).toContain('0.0.0.0/0');
        const own = keyPairOf(config.privateKey).publicKey;
        const shared = presharedKeyOf(networkSecret, 7, own, connector.publicKey);
        expect(only?.presharedKey?.reveal()).toBe(shared.reveal());
      }),
    );
    expect(enrolled[0]?.secretTag).toBe(tagOf(networkSecret));
    await enrollDevice(
      tools,
      request,
      deliverTo(async ({ config, refused }) => {
        expect(config.peers[0]?.allowedIps).not.toContain('0.0.0.0/0');
        expect(refused).toMatchObject([{ prefix: '0.0.0.0/0' }]);
      }),
    );
    expect.assertions(5);
  });

  it('names the peer whose endpoint does not resolve', async () => {
    const { tools, request, warnings } = await startService(around);
    await enrollDevice(tools, request, ignore);
    expect(warnings).toEqual([expect.stringContaining('edge.example.net does not resolve')]);
  });

  it('removes the peer when the delivery of its keys fails, and fails with that error in any case', async () => {
    const { tools, request, asked, warnings } = await startService((self) => mapAt('1', [connector, self]));
    const failure = new WrongUsage('too small');
    const deliver = deliverTo(async () => {
      throw failure;
    });
    await expect(enrollDevice(tools, request, deliver)).rejects.toBe(failure);
    expect(asked.slice(1)).toEqual([['removePeer', 7, 9]]);
    const stubborn = { ...request.admin, removePeer: () => Promise.reject(refusal) };
    await expect(enrollDevice(tools, { ...request, admin: stubborn }, deliver)).rejects.toBe(failure);
    expect(warnings.at(-1)).toContain('remove it with: cpn peer remove 7 9');
  });

  it('removes the peer when the control plane does not list it', async () => {
    const { tools, request, asked } = await startService(() => mapAt('1', [connector]));
    await expect(enrollDevice(tools, request, ignore)).rejects.toBeInstanceOf(WrongUsage);
    expect(asked.slice(1)).toEqual([['removePeer', 7, 9]]);
  });

  it('revokes the key when no peer joined with it', async () => {
    const { tools, request, asked } = await startService(around, refusal);
    await expect(enrollDevice(tools, request, ignore)).rejects.toBe(refusal);
    expect(asked.slice(1)).toEqual([['revokeKey', 7, 4]]);
  });

  it('enrols nothing that could not be handed over', async () => {
    const { tools, request, asked, enrolled } = await startService(around);
    const failure = new WrongUsage('the QR code is 181 columns wide');
    const drafts: EnrolledDevice[] = [];
    const delivery: DeviceDelivery = {
      check: async (draft) => {
        drafts.push(draft);
        throw failure;
      },
      handOver: async () => {},
    };
    for (const dialled of [null, toListed(connector)])
      await expect(enrollDevice(tools, { ...request, connector: dialled }, delivery)).rejects.toBe(failure);
    expect([asked, enrolled]).toEqual([[], []]);
    expect(drafts.map(({ config }) => [config.address.address, config.peers.length])).toEqual([
      ['10.77.0.254', 2],
      ['10.77.0.254', 1],
    ]);
  });

  it('removes the peer of an enrolment whose reply was lost', async () => {
    const lost = new Unreachable('https://cp.example.net', 'timeout', { delivered: true, heard: false } as never);
    const { tools, request, asked } = await startService(around, lost);
    await expect(enrollDevice(tools, request, ignore)).rejects.toBe(lost);
    expect(asked.slice(1)).toEqual([
      ['revokeKey', 7, 4],
      ['removePeer', 7, 9],
    ]);
  });

  it('leaves to a person what became of an enrolment while nothing can be read, and hides no bug', async () => {
    const lost = new Unreachable('https://cp.example.net', 'timeout', { delivered: true, heard: false } as never);
    const { tools, request, warnings } = await startService(around, lost);
    const admin = { ...request.admin, readNetwork: () => Promise.reject(refusal) };
    await expect(enrollDevice(tools, { ...request, admin }, ignore)).rejects.toBe(lost);
    expect(warnings.at(-1)).toContain('"cpn peer list 7" shows whether phone is enrolled');
    const faulty = { ...request.admin, readNetwork: () => Promise.reject(new TypeError('a bug')) };
    await expect(enrollDevice(tools, { ...request, admin: faulty }, ignore)).rejects.toThrow('a bug');
  });

  it('has the routes that the control plane was sent, though the network has others by then', async () => {
    const later = (self: Peer) => mapAt('1', [connector, self], { routes: [prefix('192.168.99.0/24')] });
    const { tools, request } = await startService(later);
    const asked = { ...request.network, routes: ['192.168.50.0/24'] };
    const accepted: string[][] = [];
    const keep = deliverTo(async ({ config }) => void accepted.push([...(config.peers[0]?.allowedIps ?? [])]));
    await enrollDevice(tools, { ...request, network: asked, connector: toListed(connector) }, keep);
    await enrollDevice(tools, { ...request, network: asked }, keep);
    expect(accepted[0]).toEqual(['10.77.0.0/24', '192.168.50.0/24']);
    expect(accepted[1]).toContain('192.168.99.0/24');
  });

  it.each([
    ['10.77.0.0/24', '10.77.0.254'],
    ['10.77.0.0/30', '10.77.0.2'],
    ['10.77.0.0/31', '10.77.0.1'],
    ['10.77.0.9/32', '10.77.0.9'],
  ])('drafts in the range %s the address %s', async (cidr, drafted) => {
    const { tools, request } = await startService(around);
    const seen: string[] = [];
    const check = async ({ config }: EnrolledDevice) => {
      seen.push(config.address.address);
      throw refusal;
    };
    const network = { ...request.network, private_cidr: cidr };
    const delivery = { check, handOver: async () => {} };
    await expect(enrollDevice(tools, { ...request, network }, delivery)).rejects.toBe(refusal);
    expect(seen).toEqual([drafted]);
  });

  it.each([
    ['the same one', 'https://cp.example.net', ['map-wait']],
    ['another one', 'https://other.example.net', null],
  ])('uses the features that this host knows of %s while they cannot be read', async (_, url, known) => {
    const { simulated, tools, request } = await startService(around);
    const service = { url, insecureHttp: false };
    await tools.store.write({ ...(await simulated.state()), service, features: ['map-wait'] });
    const used: unknown[] = [];
    const connect: Tools['connect'] = (to, ...rest) => {
      used.push(to.features);
      return tools.connect(to, ...rest);
    };
    const silent = new Unreachable(url, 'timeout', { delivered: false, heard: false, retryAfterMs: null });
    await enrollDevice({ ...tools, connect, describe: () => Promise.reject(silent) }, request, ignore);
    expect(used).toEqual([known]);
  });

  it('dials one connector alone, whatever peers there are, and tells the control plane', async () => {
    const map = (self: Peer) =>
      mapAt('1', [connector, named, self], { routes: [prefix('192.168.50.0/24'), prefix('0.0.0.0/0')] });
    const { simulated, tools, request, enrolled } = await startService(map);
    simulated.dnsRecords['edge.example.net'] = [];
    const devices: EnrolledDevice[] = [];
    const keep = deliverTo(async (device) => void devices.push(device));
    const via = { ...request, connector: toListed(connector), networkSecret };
    await enrollDevice(tools, via, keep);
    await enrollDevice(tools, { ...via, options: { ...options, acceptRoutes: false } }, keep);
    const [device, bare] = devices;
    const own = keyPairOf(device?.config.privateKey as Secret).publicKey;
    expect(device?.config).toMatchObject({
      mtu: 1280,
      address: { address: '10.77.0.9', length: 32 },
      peers: [
        { publicKey: connector.publicKey, endpoint: dialled(2), allowedIps: ['10.77.0.0/24', '192.168.50.0/24'] },
      ],
    });
    expect(device?.config.peers[0]?.presharedKey?.reveal()).toBe(
      presharedKeyOf(networkSecret, 7, own, connector.publicKey).reveal(),
    );
    expect([device?.refused, device?.profile]).toEqual([
      [],
      {
        ...{ connector: 2, public_key: connector.publicKey, endpoint: '203.0.113.2:51820' },
        ...{ routes: ['192.168.50.0/24'], declined: ['0.0.0.0/0'] },
      },
    ]);
    expect(bare?.config.peers[0]?.allowedIps).toEqual(['10.77.0.0/24']);
    expect(enrolled.map(({ profile }) => profile)).toEqual([
      { connector: 2, routes: ['192.168.50.0/24'] },
      { connector: 2, routes: [] },
    ]);
  });
});
