import { afterAll, beforeAll, describe, it } from 'vitest';
import { type Office, startOffice } from '../e2e/office.ts';
import { DnsServer } from '../lab/dns.ts';
import type { Host } from '../lab/host.ts';
import { endure } from './endure.ts';
import { addEdge } from './members.ts';
import { injecting } from './record.ts';
import { addTroubledHost } from './troubled-host.ts';

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

describe.concurrent('a control plane that says nothing', () => {
  it('6: drips its answer in', { timeout: patient }, () =>
    injecting(6, async (row) => {
      const troubled = await addTroubledHost(office, edge, 1);
      const { proxy } = troubled;
      await endure(troubled, row, {
        how: 'a byte every 0.2 s',
        says: /out of reach: no complete answer came within/,
        begin: () => proxy.make({ kind: 'drip' }),
        end: () => proxy.pass(),
        patience,
      });
    }),
  );

  it('7: accepts and never answers', { timeout: patient }, () =>
    injecting(7, async (row) => {
      const troubled = await addTroubledHost(office, edge, 2);
      const { proxy } = troubled;
      await endure(troubled, row, {
        how: 'no answer',
        says: /out of reach: no complete answer came within/,
        begin: () => proxy.make({ kind: 'silent' }),
        end: () => proxy.pass(),
        patience,
      });
    }),
  );

  it('7: is behind a link that loses everything', { timeout: patient }, () =>
    injecting(7, async (row) => {
      const troubled = await addTroubledHost(office, edge, 3);
      const { uplink } = troubled.proxy.host;
      await endure(troubled, row, {
        how: 'every packet dropped',
        says: /out of reach: /,
        begin: () => uplink.cut(),
        end: () => uplink.restore(),
        patience,
      });
    }),
  );

  it('14: has a name that nobody knows, or that nobody tells', { timeout: patient }, async () => {
    const dns = await DnsServer.start(await office.lab.addHost('dns', { address: '203.0.113.53/24' }));
    const name = { name: 'cp.example', dns };
    const troubled = await addTroubledHost(office, edge, 4, { name });
    const zone = { [name.name]: [troubled.proxy.host.address] };
    const lookUp = () => troubled.daemon.process.signal('SIGHUP');
    for (const [how, answers, says] of [
      ['the name does not exist', {}, /out of reach: .*ENOTFOUND/],
      ['no answer from the resolver', 'silent', /out of reach: .*EAI_AGAIN/],
    ] as const) {
      await injecting(14, (row) =>
        endure(troubled, row, {
          how,
          says,
          async begin() {
            await dns.serve(answers);
            lookUp();
          },
          end: () => dns.serve(zone),
          patience,
        }),
      );
    }
  });
});
