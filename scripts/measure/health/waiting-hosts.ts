/**
 * Simulated hosts: each reports once, and waits for its map and for messages. None of them ever
 * reached a peer directly, so that none can tell anything of a peer that it is to probe. The first
 * line of standard input names the control plane and the hosts.
 */
import { Agent, request } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { Member } from '../service/push-messages.ts';

/** Orders to a process of simulated hosts. */
export interface WaitingOrder {
  readonly url: string;
  readonly members: readonly Member[];
}

interface Reply {
  readonly etag?: string | undefined;
}

const noReply: Reply = {};
const retryMs = 1_000;

const agent = new Agent({ keepAlive: true });
const lines = createInterface({ input: process.stdin });
let waiting = 0;
lines.once('line', (line) => {
  const order: WaitingOrder = JSON.parse(line);
  for (const member of order.members) void follow(member, order);
});
lines.on('close', () => process.exit());

async function follow({ network, peer, token }: Member, { url, members }: WaitingOrder): Promise<never> {
  const path = `/api/networks/${network}`;
  const authorization = `Bearer ${token}`;
  // On a busy machine some requests fail, or are refused for now.
  const read = (headers: object) =>
    send(new URL(path, url), 'GET', { authorization, ...headers }).catch(() => delay(retryMs, noReply));
  let { etag } = await read({});
  for (; etag === undefined; { etag } = await read({})) await delay(retryMs);
  const report = new URL(`${path}/peers/${peer}/report`, url);
  await send(report, 'POST', { authorization, 'content-type': 'application/json' }, { complete: true });
  waiting += 1;
  if (waiting === members.length) process.stdout.write('waiting\n');
  for (;;) {
    const headers = { 'if-none-match': etag, 'a-im': 'cpn-delta', prefer: 'wait=45', 'peer-messages': 'probe' };
    const reply = await read(headers);
    if (reply.etag === undefined) await delay(retryMs);
    else ({ etag } = reply);
  }
}

function send(url: URL, method: string, headers: object, body?: object): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const sent = request(url, { agent, method, headers: { ...headers } }, (reply) => {
    reply.resume().on('end', () => resolve({ etag: reply.headers.etag }));
  });
  sent.on('error', reject);
  sent.end(body && JSON.stringify(body));
  return promise;
}
