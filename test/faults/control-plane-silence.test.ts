import { afterAll, beforeAll, describe, it } from 'vitest';
import { type Office, startOffice, status } from '../e2e/office.ts';
import { DnsServer } from '../lab/dns.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { surviveFault } from './control-plane-fault.ts';
import { addEdge } from './members.ts';
import { addProxiedHost } from './proxied-host.ts';
import { injecting } from './record.ts';

/** Milliseconds: more than the deadline of a request that may be held back for 50 s. */
const patience = 100_000;
const patient = 180_000;

let office: Office;
let edge: Host;

beforeAll(async () => {
  office = await startOffice();
  edge = await addEdge(office);
});

afterAll(() => office?.lab.stop());

describe.concurrent('a silent control plane', () => {
  it('6: drips its answer in', { timeout: patient }, () =>
    injecting(6, async (row) => {
      const proxied = await addProxiedHost(office, edge, 1);
      const { proxy } = proxied;
      await surviveFault(proxied, row, {
        how: 'a byte every 0.2 s',
        errorPattern: /unreachable: no complete answer came within/,
        begin: () => proxy.inject({ kind: 'drip' }),
        end: () => proxy.pass(),
        patience,
      });
    }),
  );

  it('7: accepts and never answers', { timeout: patient }, () =>
    injecting(7, async (row) => {
      const proxied = await addProxiedHost(office, edge, 2);
      const { proxy } = proxied;
      await surviveFault(proxied, row, {
        how: 'no answer',
        errorPattern: /unreachable: no complete answer came within/,
        begin: () => proxy.inject({ kind: 'silent' }),
        end: () => proxy.pass(),
        patience,
      });
    }),
  );

  it('7: is behind a link that loses everything', { timeout: patient }, () =>
    injecting(7, async (row) => {
      const proxied = await addProxiedHost(office, edge, 3);
      const { uplink } = proxied.proxy.host;
      await surviveFault(proxied, row, {
        how: 'every packet dropped',
        errorPattern: /unreachable: /,
        begin: () => uplink.cut(),
        end: () => uplink.restore(),
        patience,
      });
    }),
  );

  it('14: has a name that does not exist, or that no resolver resolves', { timeout: patient }, async () => {
    const dns = await DnsServer.start(await office.lab.addHost('dns', { address: '203.0.113.53/24' }));
    const name = { name: 'cp.example', dns };
    const proxied = await addProxiedHost(office, edge, 4, { name });
    const zone = { [name.name]: [proxied.proxy.host.address] };
    const lookUp = () => proxied.daemon.process.signal('SIGHUP');
    await injecting(14, (row) =>
      surviveFault(proxied, row, {
        how: 'the name does not exist',
        errorPattern: /unreachable: .*ENOTFOUND/,
        async begin() {
          await dns.serve({});
          lookUp();
        },
        end: () => dns.serve(zone),
        patience,
      }),
    );
    await injecting(14, async (row) => {
      row.injected('no answer from the resolver: the address that was reached last is used');
      await dns.serve('silent');
      const begun = Date.now();
      lookUp();
      const isRead = async () => {
        const { sync } = await status(proxied.host);
        return !sync.error && Date.parse(sync.last_success) > begun;
      };
      await eventually('the map is read', isRead, { timeoutMs: patience });
      row.repaired();
      await dns.serve(zone);
    });
  });
});
