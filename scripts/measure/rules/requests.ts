import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, type Dispatcher } from 'undici';
import type { SetRules } from '../../../src/contract/rules.ts';
import type { Comparison } from '../comparison.ts';
import { logIn, type Server } from '../service/changing.ts';
import { Worker } from '../service/process.ts';
import { namedRules, taggedRules } from './rule-sets.ts';

const rounds = 5;
/** Milliseconds between two requests of another client. */
const pause = 5;

interface Case {
  readonly what: string;
  readonly peers: number;
  readonly rules: (number: number) => SetRules;
}

const cases: readonly Case[] = [
  { what: '1,000 rules by tags, 2,000 peers', peers: 2000, rules: (number) => taggedRules(1000, number) },
  { what: '1,000 rules by tags, 10,000 peers', peers: 10_000, rules: (number) => taggedRules(1000, number) },
  // As large as a request may be.
  {
    what: '1,000 rules by 200 names, 2,000 peers',
    peers: 2000,
    rules: (number) => namedRules(1000, 2000, 100, number),
  },
];

/**
 * The requests about rules on SQLite, and how long another client waits for an answer meanwhile:
 * `/healthz`, which needs no database.
 */
export async function compareRequests(): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const each of cases) comparisons.push(...(await measureCase(each)));
  return comparisons;
}

async function measureCase({ what, peers, rules }: Case): Promise<Comparison[]> {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-bench-'));
  const server: Server = new Worker('push-server.ts');
  try {
    const order = { kind: 'serve', folder, database: null, networks: 1, peers, isTagged: true } as const;
    const { url, owner, members } = await server.request(order, 'serving');
    const [admin, other] = [new Client(url, { bodyTimeout: 0 }), new Client(url)];
    const token = await logIn(admin, owner);
    const path = `/api/networks/${members[0]?.network}/rules`;
    const at = (method: Dispatcher.HttpMethod, rest = '', body?: SetRules) => {
      const text = body && JSON.stringify(body);
      return () => request(admin, method, `${path}${rest}`, token, text);
    };
    const before = await server.request({ kind: 'look' }, 'looked');
    const figures = new Map<string, { readonly took: number[]; readonly waited: number[] }>();
    const bytes = JSON.stringify(rules(0)).length;
    process.stderr.write(`${what}: ${bytes} bytes\n`);
    for (let round = 0; round <= rounds; round += 1) {
      const requests = {
        preview: at('POST', '/preview', rules(round)),
        PUT: at('PUT', '', rules(round)),
        GET: at('GET'),
        'why, of two peers': at('GET', `/why?from=edge-1&to=edge-${peers}&port=443`),
        'why, from all to all': at('GET', '/why?from=any&to=any&port=443'),
        'reach, of all': at('GET', '/reach?port=443'),
        'reach, of one peer': at('GET', '/reach?to=edge-7'),
      };
      for (const [name, send] of Object.entries(requests)) {
        const { took, waited } = await measure(send, other);
        process.stderr.write(`${round} ${name}: ${took.toFixed(0)} ms, ${waited.toFixed(0)} ms\n`);
        const kept = figures.get(name) ?? { took: [], waited: [] };
        figures.set(name, kept);
        // The first round warms up.
        if (round === 0) continue;
        kept.took.push(took);
        kept.waited.push(waited);
      }
    }
    const after = await server.request({ kind: 'look' }, 'looked');
    await Promise.all([admin.close(), other.close()]);
    const own = { baseline: '', theirs: [], target: null } as const;
    return [
      ...[...figures].flatMap(([name, { took, waited }]): Comparison[] => [
        { what: `${name}: ${what}`, unit: 'ms', ours: took, ...own },
        { what: `another request meanwhile, at most: ${name}, ${what}`, unit: 'ms', ours: waited, ...own },
      ]),
      {
        what: `memory: ${what}`,
        unit: 'MiB',
        ...own,
        ours: [after.mostRssMiB],
        theirs: [before.rssMiB],
        baseline: 'before',
      },
    ];
  } finally {
    await server.end({ kind: 'end' });
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Milliseconds of a request, and the most that another client waited for an answer meanwhile. */
async function measure(send: () => Promise<void>, other: Client): Promise<{ took: number; waited: number }> {
  let isOver = false;
  const begun = performance.now();
  const sent = send().finally(() => {
    isOver = true;
  });
  let waited = 0;
  while (!isOver) {
    const from = performance.now();
    await request(other, 'GET', '/healthz');
    waited = Math.max(waited, performance.now() - from);
    await delay(pause);
  }
  await sent;
  return { took: performance.now() - begun, waited };
}

async function request(client: Client, method: Dispatcher.HttpMethod, path: string, token?: string, body?: string) {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) };
  const reply = await client.request({ method, path, headers, ...(body !== undefined && { body }) });
  const text = await reply.body.text();
  if (reply.statusCode !== 200) throw new Error(`${method} ${path}: ${reply.statusCode} ${text.slice(0, 500)}`);
}
