import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { listen } from '../api/server.ts';

/** A request of a client. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Its JSON; null for no body. */
  readonly body: Record<string, unknown> | null;
}

/** Answers one request. */
export type Answer = (response: ServerResponse, asked: ReceivedRequest) => void;

type Fields = Record<string, unknown>;

/** What differs from the usual foreign service; each may be changed at any time. */
export interface Conduct {
  /** The document at /docs/api/openapi.json; none where it is null. */
  description: Answer | object | null;
  /** The network without its peers. */
  network: Fields;
  /** The hosts that were there before, in the service's own words. */
  peers: Fields[];
  /** In place of the usual answer of an operation, by its method and path, such as `POST /api/networks/enroll`. */
  readonly answers: Record<string, Answer>;
}

/** A service, with all requests. */
export interface ForeignService extends Conduct {
  readonly url: string;
  readonly address: { readonly url: string; readonly insecureHttp: boolean };
  readonly received: readonly ReceivedRequest[];
  /** Its requests, in short. */
  readonly requests: readonly string[];
  /** The network as a whole, as it is now. */
  readonly whole: Fields;
  /** How many uses of its one key are left. */
  usesLeft: number;
}

/** The key with which hosts enrol, the password of the one user, and a token that stands for that one. */
export const foreignKey = 'cpn_foreign-key';
export const foreignPassword = 'correct horse';
export const foreignToken = 'tok|9f8e7d';

/** A gateway that the network had before: its key is that of no host. */
const gateway: Fields = {
  peer_id: 9001,
  hostname: 'gateway',
  pubkey: Buffer.alloc(32, 9).toString('base64'),
  assigned_ip: '10.77.0.1',
  public_endpoint: '203.0.113.11:51820',
};

/**
 * A service that others made from the public contract alone: ids are numbers of its own, envelopes and field names
 * differ, and it has no extension. An enrolment is carried out as often as it is requested.
 */
export async function startForeignService(conduct: Partial<Conduct> = {}): Promise<ForeignService> {
  const asked: ReceivedRequest[] = [];
  const enrolled: Fields[] = [];
  let sessions: string[] = [];
  const usual: Record<string, Answer> = {
    'POST /api/auth/login': (response, { body }) => {
      if (body?.password !== foreignPassword) return json(response, 401, { message: 'Unauthenticated.' });
      sessions = [...sessions, foreignToken];
      json(response, 200, { token: foreignToken, user: { id: 5 } });
    },
    'GET /api/auth/me': (response) => json(response, 200, { user: { id: 5, login: 'me' } }),
    'POST /api/auth/logout': (response) => json(response, 200, { message: 'Logged out.' }),
    'GET /api/networks': (response) => json(response, 200, { data: [service.network], meta: { total: 1 } }),
    'GET /api/networks/4711': (response) => json(response, 200, { data: service.whole }),
    'POST /api/networks/4711/enrollment-keys': (response) => json(response, 201, { key: foreignKey }),
    'POST /api/networks/enroll': (response, { body }) => {
      if (body?.enrollment_token !== foreignKey) return json(response, 401, { message: 'Unauthenticated.' });
      if (service.usesLeft === 0) return json(response, 403, { message: 'The key is used up.' });
      service.usesLeft -= 1;
      const number = enrolled.length + 2;
      const own = { peer_id: 9000 + number, hostname: body.name, pubkey: body.public_key, ip: `10.77.0.${number}` };
      enrolled.push(own);
      json(response, 201, { peer: own, private_network: service.whole });
    },
  };
  const { url } = await listen(
    createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const { method = '', url: path = '', headers } = request;
      const text = Buffer.concat(chunks).toString();
      const one: ReceivedRequest = { method, path, headers, body: text === '' ? null : JSON.parse(text) };
      asked.push(one);
      const operation = `${method} ${path}`;
      if (operation === 'GET /docs/api/openapi.json') return describe(response, one);
      const answer = service.answers[operation] ?? usual[operation];
      if (answer === undefined) return json(response, 404, { message: 'Not found.' });
      answer(response, one);
    }),
  );
  function describe(response: ServerResponse, one: ReceivedRequest): void {
    const { description } = service;
    if (description === null) json(response, 404, { message: 'Not found.' });
    else if (typeof description === 'function') (description as Answer)(response, one);
    else json(response, 200, description);
  }
  const service: ForeignService = {
    ...{ url, address: { url, insecureHttp: false }, received: asked, usesLeft: 10 },
    get whole() {
      return { ...service.network, members: [...service.peers, ...enrolled] };
    },
    get requests() {
      return asked.map(({ method, path }) => `${method} ${path}`);
    },
    description: null,
    network: { id: 4711, name: 'office', subnet: '10.77.0.0/24', vpn_type: 'wireguard' },
    peers: [gateway],
    answers: {},
    ...conduct,
  };
  return service;
}

export function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** Carries a request out as usual, and drops the connection in place of the reply. */
export function losing(carryOut: (asked: ReceivedRequest) => void = () => {}): Answer {
  return (response, asked) => {
    carryOut(asked);
    response.destroy();
  };
}
