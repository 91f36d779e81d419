import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { parseWebhook, type Webhook } from '../../../src/control-plane/health/webhook-settings.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { eventually } from '../../lab/eventually.ts';

export interface Received {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Receiver {
  readonly port: number;
  /** Where the webhook is at 127.0.0.1; the path is a secret. */
  readonly url: string;
  readonly received: readonly Received[];
  /** How it answers from now on. */
  answer(by: Answer): void;
  /** Passes once it has so many messages, and gives their bodies. */
  has(count: number): Promise<{ type: string; timestamp: string; data: { id: number; details: object } }[]>;
}

type Answer = (response: ServerResponse, received: Received) => void;

export const accept: Answer = (response) => response.writeHead(204).end();
export const refuse: Answer = (response) => response.writeHead(500).end('no');
/** Takes the request and is silent. */
export const ignore: Answer = () => {};

/** A receiver of webhooks on loopback that ends with the test. */
export async function startReceiver(first: Answer = accept): Promise<Receiver> {
  const received: Received[] = [];
  let answer = first;
  const server = createServer(async (request, response) => {
    const one = { url: request.url ?? '', headers: request.headers, body: await text(request) };
    received.push(one);
    answer(response, one);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}/${secretPath}`,
    received,
    answer: (by) => {
      answer = by;
    },
    has: async (count) => {
      await eventually(`${count} messages`, async () => received.length >= count);
      return received.map(({ body }) => JSON.parse(body));
    },
  };
}

export const secretPath = 'services/T0P-S3CRET';
export const signingSecret = `whsec_${Buffer.alloc(32, 'key').toString('base64')}`;

/** The flags of a process that sends these types of events to a receiver; their secrets are in files of the folder. */
export function webhookFlags(folder: string, { url }: Receiver, ...events: string[]): string[] {
  const [urlFile, secretFile] = [join(folder, 'webhook-url'), join(folder, 'webhook-secret')];
  writeFileSync(urlFile, `${url}\n`, { mode: 0o600 });
  writeFileSync(secretFile, `${signingSecret}\n`, { mode: 0o600 });
  return [
    ...['--webhook', `file:${urlFile}`, '--webhook-secret-file', secretFile],
    ...['--webhook-allow', '127.0.0.1', '--webhook-events', events.join()],
  ];
}

/** The settings of a webhook at a receiver. */
export function webhookAt(
  url: string,
  events: readonly string[] = [],
  allow = ['127.0.0.0/8'],
  secrets = [signingSecret],
): Webhook {
  return parseWebhook({ url: new Secret(url), secrets: new Secret(secrets.join('\n')), events, allow });
}
