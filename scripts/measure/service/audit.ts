import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { serve } from '../../../src/control-plane/serve.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import type { Comparison } from '../comparison.ts';

const [rounds, requests, clients] = [20, 400, 8];
const never = 2 ** 31 - 1;
const owner = { email: 'owner@example.net', password: 'correct horse battery staple' };

/** Requests that leave audit entries, of a control plane that chains them and of one without. */
export async function compareAudit(): Promise<Comparison[]> {
  const [chained, plain] = [await start(1_000), await start(never)];
  try {
    const [ours, theirs]: [number[], number[]] = [[], []];
    await chained.change();
    await plain.change();
    for (let round = 0; round < rounds; round += 1) {
      ours.push(await chained.change());
      theirs.push(await plain.change());
    }
    return [
      {
        ...{ what: `${requests} changes, ${clients} at once, with the chain of the audit`, baseline: 'without it' },
        ...{ unit: 'ms', ours, theirs, target: { ratioAtMost: 1.1, text: '≤ 1.1' } },
      },
    ];
  } finally {
    await chained.stop();
    await plain.stop();
  }
}

async function start(chainMs: number) {
  const dataDir = await mkdtemp(join(tmpdir(), 'cpn-bench-'));
  const credentials = { email: owner.email, password: new Secret(owner.password) };
  const server = await serve({
    ...{ host: '127.0.0.1', port: 0, dataDir, owner: credentials, allowPublicRoutes: false, chainMs },
    ...{ logger: pino({ level: 'silent' }), limits: { userChanges: 1_000_000, requests: 1_000_000 } },
  });
  const call = async (method: string, path: string, body: object, token = '') => {
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) };
    const response = await fetch(`${server.url}${path}`, { method, headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
    return ((await response.json()) as { data: Record<string, never> }).data;
  };
  const { access_token: token } = await call('POST', '/api/auth/login', owner);
  const { id } = await call('POST', '/api/networks', { name: 'office', private_cidr: '10.77.0.0/24' }, token);
  let count = 0;
  const work = async (share: number) => {
    for (let done = 0; done < share; done += 1) {
      count += 1;
      await call('PATCH', `/api/networks/${id}`, { description: `change ${count}` }, token);
    }
  };
  return {
    /** Milliseconds for all requests. */
    async change(): Promise<number> {
      const started = performance.now();
      await Promise.all(Array.from({ length: clients }, () => work(requests / clients)));
      return performance.now() - started;
    },
    async stop() {
      await server.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
