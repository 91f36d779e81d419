import { type IncomingHttpHeaders, type ServerResponse, request as send } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { changeMap, tagOf } from './changed-map.ts';
import type { MapChanges, ProxyFault } from './proxy-fault.ts';

/** A request and its response; `end` aborts when its client is gone, or when it is handled again. */
export interface Exchange {
  readonly target: string;
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly response: ServerResponse;
  end: AbortController;
}

interface Reply {
  readonly status: number;
  readonly etag: string | null;
  readonly body: string;
}

const json = { 'content-type': 'application/json' };
const mebibyte = 1024 * 1024;
const beginning = '{"data":{"id":1,"name":"office","peers":[';
/** Inflates to 200 MiB. To compress it while a request waits takes longer than its deadline. */
const bomb = Buffer.concat([gzipSync(beginning), ...Array(200).fill(gzipSync(Buffer.alloc(mebibyte, ' ')))]);
let changes = 0;

/** Handles a request according to the fault. Faults of the map leave other requests alone. */
export async function inject(exchange: Exchange, fault: ProxyFault): Promise<void> {
  const { response, end } = exchange;
  switch (fault.kind) {
    case 'answer':
      return void response.writeHead(fault.status, { ...json, ...fault.headers }).end(fault.body ?? '{}');
    case 'drip':
      response.writeHead(200, json).write(beginning);
      for (;;) {
        await sleep(200, undefined, { signal: end.signal });
        response.write(' ');
      }
    case 'truncated':
      response.writeHead(200, { ...json, 'content-length': 5000 });
      return void response.write(beginning, () => response.socket?.resetAndDestroy());
    case 'oversize':
      return pipeline(Readable.from(megabytes(100)), response.writeHead(200, json), { signal: end.signal });
    case 'bomb':
      return void response.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(bomb);
    case 'silent':
    case 'refuse':
      return;
    case 'lose':
      return pass(exchange, true);
    default:
      if (fault.kind === 'pass' || !isMap(exchange)) return pass(exchange);
      return injectMap(exchange, fault);
  }
}

async function injectMap(exchange: Exchange, fault: ProxyFault): Promise<void> {
  const reply = await readMap(exchange);
  if (reply.status !== 200) return answer(exchange, reply);
  switch (fault.kind) {
    case 'map':
      return answerWaiting(exchange, change(reply, fault.changes));
    case 'churn':
      changes += 1;
      return answer(
        exchange,
        change(reply, { crowd: { count: 1, from: '10.77.255.1', type: 'origin', first: changes } }),
      );
    default:
      return answer(exchange, { ...reply, body: changeMap(reply.body, {}), etag: null });
  }
}

/** Passes a request on, and its answer back unless that must be lost. */
async function pass({ target, url, method, headers, body, response, end }: Exchange, lost = false): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const { connection: _connection, host: _host, 'transfer-encoding': _encoding, ...passed } = headers;
  send(`${target}${url}`, { method, headers: passed, signal: end.signal }, (reply) => {
    if (lost) {
      reply.resume();
      return void reply.on('end', () => response.socket?.resetAndDestroy()).on('error', reject);
    }
    response.writeHead(reply.statusCode ?? 502, reply.headers);
    pipeline(reply, response).then(resolve, reject);
  })
    .on('error', reject)
    .end(body);
  return promise;
}

/** The control plane's present answer, whatever the client has. */
async function readMap({ target, url, headers, end }: Exchange): Promise<Reply> {
  const authorization = headers.authorization ?? '';
  const reply = await fetch(`${target}${url}`, { headers: { authorization }, signal: end.signal });
  return { status: reply.status, etag: reply.headers.get('etag'), body: await reply.text() };
}

function change({ body }: Reply, how: MapChanges): Reply {
  const changed = changeMap(body, how);
  return { status: 200, etag: tagOf(changed), body: changed };
}

/** Answers as the control plane would: a client that has this map gets 304, after the wait that it requests. */
async function answerWaiting(exchange: Exchange, reply: Reply): Promise<void> {
  const { headers, response, end } = exchange;
  const [, seconds] = /^wait=(\d+)$/.exec(String(headers.prefer ?? '')) ?? [];
  const known = headers['if-none-match'];
  if (known !== undefined && seconds !== undefined) response.setHeader('preference-applied', `wait=${seconds}`);
  if (known !== reply.etag) return answer(exchange, reply);
  await sleep(Number(seconds ?? 0) * 1000, undefined, { signal: end.signal });
  response.writeHead(304, { etag: known }).end();
}

function answer({ response }: Exchange, { status, etag, body }: Reply): void {
  response.writeHead(status, { ...json, ...(etag === null ? {} : { etag }) }).end(body);
}

function isMap({ method, url }: Exchange): boolean {
  return method === 'GET' && /^\/api\/networks\/\d+$/.test(url);
}

function* megabytes(count: number): Generator<Buffer> {
  yield Buffer.from(beginning);
  for (let sent = 0; sent < count; sent++) yield Buffer.alloc(mebibyte, ' ');
}
