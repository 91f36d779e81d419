import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'undici';
import { type Admin, send } from './changing.ts';
import type { Member } from './push-messages.ts';

/** How often a key can be used at most. */
const usesOfKey = 10;

/** Makes so many networks and gives their ids; several requests are under way at once. */
export async function makeNetworks(admin: Admin, count: number): Promise<number[]> {
  const asked = Array.from({ length: count }, (_, index) => index);
  return inParallel(8, asked, async (index) => {
    const network = { name: `network-${index}`, private_cidr: '10.64.0.0/12' };
    const { data } = (await send(admin.admin, 'POST', '/api/networks', network, admin.token)) as {
      data: { id: number };
    };
    return data.id;
  });
}

/** A key of a network, and how many hosts are to come with it. */
export interface Invitation {
  readonly network: number;
  readonly key: string;
  readonly hosts: number;
}

/** Makes the keys with which so many hosts can come into each of the networks. */
export async function invite(admin: Admin, networks: readonly number[], hosts: number): Promise<Invitation[]> {
  const asked = networks.flatMap((network) =>
    Array.from({ length: Math.ceil(hosts / usesOfKey) }, (_, index) => ({
      network,
      hosts: Math.min(usesOfKey, hosts - index * usesOfKey),
    })),
  );
  return inParallel(8, asked, async ({ network, hosts }) => {
    const body = { name: 'rack', max_uses: hosts };
    const path = `/api/networks/${network}/enrollment-keys`;
    const { data } = (await send(admin.admin, 'POST', path, body, admin.token)) as {
      data: { enrollment_token: string };
    };
    return { network, key: data.enrollment_token, hosts };
  });
}

/**
 * Enrols the hosts of all invitations, `width` at once, each of these from an address of its own:
 * the control plane lets those of one address in one after another. The whole answer is read.
 */
export async function enrollAll(
  urls: readonly string[],
  invitations: readonly Invitation[],
  width: number,
): Promise<Member[]> {
  const free = Array.from({ length: width }, (_, index) => {
    const url = urls[index % urls.length] ?? '';
    return new Client(url, { localAddress: `127.0.2.${1 + index}`, pipelining: 1 });
  });
  const clients = [...free];
  try {
    const members = await inParallel(width, invitations, async ({ network, key, hosts }) => {
      const client = free.pop() as Client;
      const members: Member[] = [];
      for (let host = 0; host < hosts; host += 1) members.push(await enroll(client, network, key));
      free.push(client);
      return members;
    });
    return members.flat();
  } finally {
    for (const client of clients) await client.close();
  }
}

const near = 2048;

/**
 * Enrols one host, as a connector does: where the control plane sends Retry-After, it retries as
 * the same host.
 */
async function enroll(client: Client, network: number, key: string): Promise<Member> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': randomBytes(16).toString('hex') };
  const body = JSON.stringify({
    ...{ enrollment_token: key, name: `edge-${randomBytes(4).toString('hex')}`, peer_type: 'origin' },
    ...{ public_key: randomBytes(32).toString('base64'), endpoint: '203.0.113.9:51820' },
  });
  for (let attempt = 1; ; attempt += 1) {
    const { statusCode, head, tail } = await post(client, headers, body);
    const [, peer] = /^\{"data":\{"peer":\{"id":([0-9]+),/.exec(head) ?? [];
    const [, token] = /"access_token":"(cpp_[\w-]+)"/.exec(`${head}${tail}`) ?? [];
    if (statusCode === 201 && peer !== undefined && token !== undefined) return { network, peer: Number(peer), token };
    if (statusCode !== 503 || attempt === attempts) {
      throw new Error(`an enrolment was answered ${statusCode}: ${head.slice(0, 200)}`);
    }
    await delay(1000);
  }
}

const attempts = 30;

/**
 * The whole answer is read, and its two ends are given: a map of thousands of peers may come
 * between them.
 */
async function post(client: Client, headers: Record<string, string>, body: string) {
  const reply = await client.request({ method: 'POST', path: '/api/networks/enroll', headers, body });
  let [head, tail] = ['', ''];
  for await (const chunk of reply.body) {
    if (head.length < near) head += (chunk as Buffer).toString('latin1');
    tail = (tail + (chunk as Buffer).subarray(-near).toString('latin1')).slice(-near);
  }
  return { statusCode: reply.statusCode, head, tail };
}

/** Does a piece of work for each, so many at once, and gives their results in the same order. */
async function inParallel<Item, Result>(
  width: number,
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const left = items.entries();
  const take = async () => {
    for (const [index, item] of left) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: width }, take));
  return results;
}
