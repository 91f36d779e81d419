/**
 * Simulated hosts: each waits for its map, and gets no answer where it is to probe another one. The first line of standard input names
 * the control plane and the hosts; the first of these reach the peers `direct` directly.
 */
import { Agent, request } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { Member } from '../service/push-messages.ts';

/** Orders to a process of simulated hosts. */
export interface WaitingOrder {
  readonly url: string;
  readonly members: readonly Member[];
  readonly direct: readonly number[];
}

/** Hosts that reach the peers directly, and milliseconds that an unanswered probe takes. */
const reaching = 10;
const probeMs = 3_500;

const agent = new Agent({ keepAlive: true });
const lines = createInterface({ input: process.stdin });
let waiting = 0;
lines.once('line', (line) => {
  const order: WaitingOrder = JSON.parse(line);
  for (const [index, member] of order.members.entries()) void follow(member, order, index < reaching);
});
lines.on('close', () => process.exit());

async function follow({ network, peer, token }: Member, { url, members, direct }: WaitingOrder, reaches: boolean) {
  const call = (method: string, path: string, headers: object, body?: object) =>
    send(
      new URL(`/api/networks/${network}${path}`, url),
      method,
      { authorization: `Bearer ${token}`, ...headers },
      body,
    );
  const report = (body: object) => call('POST', `/peers/${peer}/report`, { 'content-type': 'application/json' }, body);
  const { etag = '' } = await call('GET', '', {});
  await report({ complete: true, ...(reaches && { paths: direct.map((other) => ({ peer: other, path: 'direct' })) }) });
  waiting += 1;
  if (waiting === members.length) process.stdout.write('waiting\n');
  const headers = { 'if-none-match': etag, 'a-im': 'cpn-delta', prefer: 'wait=45', 'peer-messages': 'probe' };
  for (;;) {
    const { body } = await call('GET', '', headers);
    const probed = [...body.matchAll(/"kind":"probe","data":\{"peers":\[([\d,]+)\]/g)].flatMap(([, ids = '']) =>
      ids.split(','),
    );
    if (probed.length === 0) continue;
    void delay(probeMs).then(() => report({ probes: probed.map((id) => ({ peer: Number(id), answered: false })) }));
  }
}

function send(url: URL, method: string, headers: object, body?: object): Promise<{ etag?: string; body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ etag?: string; body: string }>();
  const sent = request(url, { agent, method, headers: { ...headers } }, (reply) => {
    let text = '';
    reply.setEncoding('utf8').on('data', (part) => {
      text += part;
    });
    reply.on('end', () => resolve({ ...(reply.headers.etag && { etag: reply.headers.etag }), body: text }));
  });
  sent.on('error', reject);
  sent.end(body && JSON.stringify(body));
  return promise;
}
