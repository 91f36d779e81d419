import { signal } from '@preact/signals';
import type { Refusal } from '../contract/reply.ts';
import { toSentence } from './logic/text/format.ts';

/** The path of the page and its cookie. */
export const ownPath = () => new URL('.', location.href).pathname;

/** Without storage, a session ends with its page. */
let unstored: string | null = null;

const nameInStorage = () => `cpn session ${ownPath()}`;

/** All windows of this origin share this half of the session. Other ports get only the cookie. */
function readSessionKey(): string | null {
  try {
    return localStorage.getItem(nameInStorage()) ?? unstored;
  } catch {
    return unstored;
  }
}

/** How long after an input of the user reads still count as a use of the session. */
const inputMs = 60_000;
let lastInput = Date.now();
for (const input of ['pointerdown', 'keydown', 'wheel', 'touchmove'])
  addEventListener(input, () => (lastInput = Date.now()), { capture: true, passive: true });

/** A page that is left open reads on, and must not keep its session. */
const unused = () => (Date.now() - lastInput > inputMs ? { prefer: 'wait=0' } : {});

/** Counts the sessions that this page began or ended. */
let changes = 0;

export function storeSessionKey(key: string | null): void {
  changes += 1;
  unstored = key;
  try {
    if (key === null) localStorage.removeItem(nameInStorage());
    else localStorage.setItem(nameInStorage(), key);
  } catch {
    // Kept only in this page.
  }
}

/** A failed request: the API's sentence, and on a 422 the broken rules by field. */
export class ApiError extends Error {
  /** 0 without a reply. */
  readonly status: number;
  readonly fields: Readonly<Record<string, readonly string[]>>;

  constructor(status: number, message: string, fields: ApiError['fields'] = {}) {
    super(message);
    this.status = status;
    this.fields = fields;
  }
}

/** Counts replies without a valid session. */
export const sessionsEnded = signal(0);

/** True if the last of the repeated requests failed. */
export const isOutOfReach = signal(false);

/** True for an error that concerns the control plane, or a proxy in front of it, as a whole. */
export const isOutage = (error: unknown) => error instanceof ApiError && [0, 502, 503, 504].includes(error.status);

/** True if a failed request may have been executed: its reply was lost or is unreadable. */
export const isOutcomeUnknown = (error: unknown) =>
  !(error instanceof ApiError) || error.status === 0 || error.status >= 500;

export interface RequestOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** The path has no leading slash, so that it works below any path of a proxy. @throws ApiError */
export async function send(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const { body, headers = {}, signal: aborted } = options;
  const key = readSessionKey();
  const before = changes;
  const response = await fetch(path, {
    method,
    headers: {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(key !== null && { 'session-key': key }),
      ...(method === 'GET' && unused()),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(aborted && { signal: aborted }),
    credentials: 'same-origin',
    cache: 'no-store',
    redirect: 'error',
  }).catch((error: unknown) => {
    if (aborted?.aborted) throw error;
    throw new ApiError(0, 'The control plane does not answer. Check the connection, then try again.');
  });
  if (response.ok || response.status === 304) {
    isOutOfReach.value = false;
    return response;
  }
  const refusal: Partial<Refusal> | null = await response.json().catch(() => null);
  if (response.status === 401 && !loginPaths.includes(path)) {
    const later = readSessionKey();
    // Another session began meanwhile, in this window or another.
    if (later !== null && later !== key) {
      if (method === 'GET') return send(method, path, options);
      // Its user may be another one, who did not click.
      throw new ApiError(401, 'Another session began meanwhile, and nothing was changed. Try again.');
    }
    // A session without a key may have begun meanwhile too.
    if (changes === before) sessionsEnded.value += 1;
  }
  const message = refusal?.message ?? `the control plane answered with the status ${response.status}`;
  throw new ApiError(response.status, toSentence(message), refusal?.errors);
}

export const loginPath = 'api/auth/login';
export const singleSignOnPath = 'api/auth/single-sign-on';
/** A refusal by one of these ends no session. */
const loginPaths = [loginPath, `${loginPath}/second-factor`, singleSignOnPath, `${singleSignOnPath}/session`];

/** Sends a request, and returns the `data` of its reply. @throws ApiError */
export async function call<Data>(method: string, path: string, body?: unknown): Promise<Data> {
  const response = await send(method, path, body === undefined ? {} : { body });
  const { data } = await response.json();
  return data;
}

interface Page<Item> {
  readonly data: readonly Item[];
  readonly links?: { readonly next: string | null };
}

/** Reads all pages of a list. @throws ApiError */
export async function readList<Item>(path: string): Promise<readonly Item[]> {
  const items: Item[] = [];
  let query = '';
  for (;;) {
    const page: Page<Item> = await (await send('GET', query === '' ? path : path.replace(/\?.*|$/, query))).json();
    items.push(...page.data);
    const next = page.links?.next ?? null;
    if (next === null) return items;
    query = next;
  }
}
