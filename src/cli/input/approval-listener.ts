import { timingSafeEqual } from 'node:crypto';
import http, { type IncomingMessage } from 'node:http';
import { Secret } from '../../core/crypto/secret.ts';

/** Milliseconds. The browser is on this machine. */
const deadlines = { headersTimeout: 5_000, requestTimeout: 5_000, connectionsCheckingInterval: 1_000 };
const mostConnections = 16;

export interface ApprovalListener {
  readonly port: number;
  /** The code that the console brings; null if the user refused. */
  readonly answer: Promise<Secret | null>;
  close(): void;
}

/**
 * Listens on 127.0.0.1 for the page to which the console returns after the user's decision (RFC
 * 8252, 7.3). Ignores requests without the state: any page can send one.
 */
export async function listenForApproval(state: Secret): Promise<ApprovalListener> {
  const server = http.createServer({ ...deadlines, maxHeaderSize: 16_384 });
  server.maxConnections = mostConnections;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : 0;
  const answer = new Promise<Secret | null>((resolve) => {
    server.on('request', (request, response) => {
      const decision = readDecision(request, port, state);
      response.setHeader('connection', 'close');
      if (decision === undefined) return void response.writeHead(404, headers).end('there is nothing here\n');
      const text = decision === null ? 'cpn does not log in.' : 'cpn received the approval.';
      response.writeHead(200, headers).end(`${text} You can close this window.\n`, () => resolve(decision));
    });
  });
  const close = () => {
    server.close();
    // The last reply is complete, and the browser may hold other connections.
    server.closeIdleConnections();
    setTimeout(() => server.closeAllConnections(), lingerMs).unref();
  };
  return { port, answer, close };
}

const lingerMs = 500;

const headers = {
  'content-type': 'text/plain; charset=utf-8',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};

/** Undefined for a request that the console did not cause. */
function readDecision(request: IncomingMessage, port: number, state: Secret): Secret | null | undefined {
  const { method, url = '', headers: sent } = request;
  // A name that resolves to this address is of another page (DNS rebinding).
  if (method !== 'GET' || sent.host !== `127.0.0.1:${port}`) return undefined;
  const target = URL.parse(url, `http://${sent.host}`);
  if (target?.pathname !== '/' || !isSame(target.searchParams.get('state') ?? '', state.reveal())) return undefined;
  if (target.searchParams.get('error') === 'access_denied') return null;
  const code = target.searchParams.get('code');
  return code === null || code === '' ? undefined : new Secret(code);
}

function isSame(one: string, other: string): boolean {
  const [given, expected] = [Buffer.from(one), Buffer.from(other)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}
