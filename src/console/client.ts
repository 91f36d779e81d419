import { signal } from '@preact/signals';
import type { Refusal } from '../contract/reply.ts';
import { toSentence } from './logic/text/to-sentence.ts';
import { readSessionKey } from './session-key.ts';

/** A request that failed: the sentence of the API, and on a 422 the rules that each field broke. */
export class ApiError extends Error {
  /** 0 where there was no answer. */
  readonly status: number;
  readonly fields: Readonly<Record<string, readonly string[]>>;

  constructor(status: number, message: string, fields: ApiError['fields'] = {}) {
    super(message);
    this.status = status;
    this.fields = fields;
  }
}

/** Counts the answers that there is no session, or no more. */
export const sessionsEnded = signal(0);

/** Whether the last request failed of those that are repeated. */
export const isOutOfReach = signal(false);

/** Whether an error is about the control plane, or what is in front of it, as a whole. */
export const isOutage = (error: unknown) => error instanceof ApiError && [0, 502, 503, 504].includes(error.status);

/** Whether a request that failed may have been carried out: its reply was lost, or cannot be read. */
export const isOutcomeUnknown = (error: unknown) =>
  !(error instanceof ApiError) || error.status === 0 || error.status >= 500;

export interface RequestOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Sends a request to a path of the API without a leading slash, so that it works below any path of a proxy. @throws ApiError */
export async function send(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const { body, headers = {}, signal: aborted } = options;
  const key = readSessionKey();
  const response = await fetch(path, {
    method,
    headers: {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(key !== null && { 'session-key': key }),
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
  if (response.status === 401 && path !== loginPath) {
    const later = readSessionKey();
    // Meanwhile another session began, here or in another window.
    if (later !== null && later !== key) {
      if (method === 'GET') return send(method, path, options);
      // Its user may be another one, who did not click.
      throw new ApiError(401, 'Another session began meanwhile, and nothing is changed. Try again.');
    }
    sessionsEnded.value += 1;
  }
  const message = refusal?.message ?? `the control plane answered with the status ${response.status}`;
  throw new ApiError(response.status, toSentence(message), refusal?.errors);
}

export const loginPath = 'api/auth/login';

/** Sends a request, and gives the `data` of its reply. @throws ApiError */
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
