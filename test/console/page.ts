import { vi } from 'vitest';

/** A request of the page that is not answered yet. */
export interface PageRequest {
  readonly path: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal | undefined;
  answer(status: number, data?: unknown, headers?: Record<string, string>): Promise<void>;
  /** Answers with a body that is no `data`. */
  reply(response: Response): Promise<void>;
  /** Ends the connection without an answer. */
  drop(): Promise<void>;
}

/** Lets all else run that does not wait for time to pass. */
export const settle = () => pass(0);

/** Lets time pass, in milliseconds. */
export async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  await vi.advanceTimersByTimeAsync(0);
}

/** Holds the requests of the page until the test answers them. */
export function holdRequests(): PageRequest[] {
  const requests: PageRequest[] = [];
  vi.stubGlobal('fetch', (path: string, { method = 'GET', headers, signal }: RequestInit) => {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    signal?.addEventListener('abort', () => reject(signal.reason));
    const reply = async (response: Response) => {
      resolve(response);
      await settle();
    };
    requests.push({
      ...{ path, method, headers: headers as Record<string, string>, signal: signal ?? undefined, reply },
      answer: (status, data, more = {}) =>
        reply(new Response(status === 304 ? null : JSON.stringify({ data }), { status, headers: more })),
      async drop() {
        reject(new TypeError('fetch failed'));
        await settle();
      },
    });
    return promise;
  });
  return requests;
}

/** Whether the page is visible, and its listeners for that. */
export function stubDocument() {
  const listeners = new Set<() => void>();
  const page = {
    hidden: false,
    addEventListener: (_: string, listener: () => void) => void listeners.add(listener),
    removeEventListener: (_: string, listener: () => void) => void listeners.delete(listener),
  };
  vi.stubGlobal('document', page);
  return {
    listeners,
    async setHidden(hidden: boolean) {
      page.hidden = hidden;
      for (const listener of [...listeners]) listener();
      await settle();
    },
  };
}

/** The locks and the channels that the windows of a browser share. */
export function stubWindows() {
  const held = new Set<string>();
  const windows = new Set<FakeChannel>();
  class FakeChannel {
    readonly name: string;
    onmessage: ((message: { data: unknown }) => void) | null = null;
    constructor(name: string) {
      this.name = name;
      windows.add(this);
    }
    postMessage(data: unknown): void {
      for (const other of windows) if (other !== this && other.name === this.name) other.onmessage?.({ data });
    }
    close(): void {
      windows.delete(this);
    }
  }
  const request = async (
    name: string,
    { ifAvailable }: { ifAvailable: boolean },
    use: (lock: object | null) => unknown,
  ) => {
    if (held.has(name)) {
      if (ifAvailable) return use(null);
      throw new Error(`waits for ${name}`);
    }
    held.add(name);
    try {
      return await use({ name });
    } finally {
      held.delete(name);
    }
  };
  vi.stubGlobal('navigator', { locks: { request } });
  vi.stubGlobal('BroadcastChannel', FakeChannel);
  return {
    held,
    /** Another window of the browser. */
    open(name: string) {
      const heard: unknown[] = [];
      const channel = new FakeChannel(name);
      channel.onmessage = ({ data }) => heard.push(data);
      return { heard, say: (data: unknown) => channel.postMessage(data) };
    },
  };
}

interface Preact {
  readonly options: { requestAnimationFrame?: (callback: () => void) => void };
  h(type: (props: never) => null, props: object): object;
  render(node: object | null, place: object): void;
}

// The types of the package need the library of a browser, which tests lack.
const library = 'preact';
const { h, options, render }: Preact = await import(library);

// Effects run after the render, not after the next frame of a screen.
options.requestAnimationFrame = queueMicrotask;

/** A component that shows nothing but what a hook returns. */
export function showHook<Argument, Result>(use: (argument: Argument) => Result) {
  const shown: Result[] = [];
  const place = {};
  const Probe = ({ argument }: { argument: Argument }) => {
    shown.push(use(argument));
    return null;
  };
  return {
    shown,
    get last() {
      return shown.at(-1) as Result;
    },
    async show(argument: Argument) {
      render(h(Probe, { argument }), place);
      await settle();
    },
    async remove() {
      render(null, place);
      await settle();
    },
  };
}
