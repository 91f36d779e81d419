import type { Secret } from '../core/crypto/secret.ts';
import { BadReply } from '../core/errors/index.ts';
import { type Aliases, aliases } from './aliases.ts';
import type { Call, Reply } from './http/attempt.ts';
import { parseJson, readWhole } from './http/body.ts';
import type { ReplyLimits } from './http/connection.ts';
import { sanitizeForMessage } from './http/sanitize-for-message.ts';

export interface ListPage {
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The bytes of its body. */
  readonly size: number;
}

interface Lister {
  readonly base: URL;
  /** Not to be shown if the service repeats it. */
  readonly secrets: readonly Secret[];
}

/** The limits of a list. */
interface PageLimits {
  readonly pages: number;
  readonly bytes: number;
}

const usualLimits: PageLimits = { pages: 1_000, bytes: 64 * 1024 * 1024 };
const longestAddress = 4_096;
const remedy = 'the list is not complete; ask the operator of the service';

/**
 * Reads a list page by page, by `links.next`, a `Link` header (RFC 8288), or `last_page`. `first`
 * is the first path, perhaps with a query; `read` gets one page. Paths are below the base address,
 * so no other host receives a token.
 *
 * @throws BadReply if the next page is elsewhere or was read before, or if the list exceeds the
 *   limits
 */
export async function* readPages<One extends ListPage>(
  service: Lister,
  first: string,
  read: (path: string) => Promise<One>,
  limits: PageLimits = usualLimits,
): AsyncGenerator<One> {
  const visited = new Set<string>();
  let bytes = 0;
  for (let path = first; ; ) {
    visited.add(path);
    const page = await read(path);
    const { origin, pathname } = service.base;
    const url = new URL(`${origin}${pathname.replace(/\/$/, '')}${path}`);
    const wrong = (problem: string) => new BadReply(`${url.origin}${url.pathname}`, problem, remedy);
    bytes += page.size;
    if (bytes > limits.bytes) throw wrong(`and the pages before it have more than ${limits.bytes} bytes`);
    yield page;
    const next = findNext(page, url);
    if (next === null) return;
    path = pathBelow(service, url, next, wrong);
    if (visited.has(path)) throw wrong('names a next page that was read before');
    if (visited.size >= limits.pages) throw wrong(`names a next page after ${limits.pages} pages`);
  }
}

/** The entries of all pages; the request is for the first one. */
export type List = <Entry>(
  request: Call,
  decode: (body: unknown, reading: ReplyLimits) => readonly Entry[],
) => Promise<Entry[]>;

/** Creates a list reader; `call` reads one page. */
export function createList(service: Lister, call: (request: Call) => Promise<Reply>): List {
  return async (request, decode) => {
    const read = async (path: string) => {
      let size = 0;
      const receive: Call['receive'] = async (response, reading) => {
        const bytes = await readWhole(response, reading);
        size = bytes.length;
        return parseJson(response, bytes, reading);
      };
      return { ...(await call({ ...request, path, receive })), size };
    };
    const pages = [];
    for await (const { body, reading } of readPages(service, request.path, read)) pages.push(decode(body, reading));
    return pages.flat();
  };
}

/** The relative address of the next page; null after the last. */
function findNext({ body, headers }: ListPage, url: URL): string | null {
  const links = property(body, aliases.page.links);
  const next = property(links, aliases.page.next) ?? property(body, aliases.page.nextAddress);
  const named = typeof next === 'string' ? next : property(next, aliases.page.address);
  if (typeof named === 'string' && named !== '') return named;
  return findNextLink(headers.link) ?? findNextNumber(body, url);
}

/** The target of the first link whose relation is `next`. */
function findNextLink(header: string | readonly string[] | undefined): string | null {
  for (const [, target = '', parameters = ''] of String(header ?? '').matchAll(/<([^>]*)>([^<]*)/g)) {
    const [, quoted, plain] = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/i.exec(parameters) ?? [];
    const relations = (quoted ?? plain ?? '').toLowerCase().split(/\s+/);
    if (relations.includes('next')) return target;
  }
  return null;
}

/** The page after the current one, by the service's number or the request's. */
function findNextNumber(body: unknown, url: URL): string | null {
  const meta = property(body, aliases.page.meta) ?? body;
  const last = property(meta, aliases.page.last);
  const current = property(meta, aliases.page.current) ?? Number(url.searchParams.get('page') ?? 1);
  if (!Number.isSafeInteger(last) || !Number.isSafeInteger(current)) return null;
  if ((current as number) >= (last as number)) return null;
  const query = new URLSearchParams(url.search);
  query.set('page', String((current as number) + 1));
  return `?${query}`;
}

/**
 * The path of a next page below the base address, with our scheme: behind a proxy, services may not
 * have theirs.
 */
function pathBelow({ base, secrets }: Lister, url: URL, next: string, wrong: (problem: string) => BadReply): string {
  const target = next.length > longestAddress ? null : URL.parse(next, url.href);
  if (target === null) throw wrong('names a next page that is not a URL');
  if (target.host !== base.host) {
    throw wrong(`names a next page at ${sanitizeForMessage(target.host, secrets, 100)}, which is another host`);
  }
  const basePath = base.pathname.replace(/\/$/, '');
  if (!target.pathname.startsWith(`${basePath}/`)) throw wrong('names a next page outside of the base address');
  return `${target.pathname.slice(basePath.length)}${target.search}`;
}

/** The first of these properties that is present and not null. */
function property(value: unknown, names: Aliases): unknown {
  if (typeof value !== 'object' || value === null) return null;
  const entries = new Map(Object.entries(value));
  return names.map((name) => entries.get(name) ?? null).find((found) => found !== null) ?? null;
}
