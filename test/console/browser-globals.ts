import { createServer } from 'node:http';
import { expect, vi } from 'vitest';
import { type Asked, listen, type Reply } from '../api/server.ts';

/** What a page has of its browser, for modules that read it when they are loaded. */
export function stubBrowser() {
  const stored = new Map<string, string>();
  const listeners = new Map<string, unknown>();
  const channels: InstanceType<typeof BroadcastChannel>[] = [];
  class Channel extends BroadcastChannel {
    constructor(name: string) {
      super(name);
      channels.push(this);
    }
  }
  let isStorageClosed = false;
  const storage = <T>(use: () => T): T => {
    if (isStorageClosed) throw new Error('the storage is closed');
    return use();
  };
  vi.stubGlobal('location', { href: 'https://cp.example.net/vpn/#/networks', hash: '#/networks' });
  vi.stubGlobal('localStorage', {
    getItem: (name: string) => storage(() => stored.get(name) ?? null),
    setItem: (name: string, value: string) => storage(() => void stored.set(name, value)),
    removeItem: (name: string) => storage(() => void stored.delete(name)),
  });
  vi.stubGlobal('BroadcastChannel', Channel);
  vi.stubGlobal('addEventListener', (name: string, listener: unknown) => listeners.set(name, listener));
  vi.stubGlobal('removeEventListener', (name: string) => listeners.delete(name));
  return {
    stored,
    listeners,
    closeStorage: () => {
      isStorageClosed = true;
    },
    close: () => {
      for (const channel of channels) channel.close();
      vi.unstubAllGlobals();
    },
  };
}

/** A control plane that gives each request of the page the next of these replies, and the last one over and over. */
export async function serveConsole(...replies: Reply[]) {
  const asked: Asked[] = [];
  const { url } = await listen(
    createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const { method = '', url: path = '', headers } = request;
      const one = { method, path, headers, body: Buffer.concat(chunks).toString() };
      asked.push(one);
      (replies[asked.length - 1] ?? replies.at(-1))?.(response, one);
    }),
  );
  const real = globalThis.fetch;
  vi.stubGlobal('fetch', (path: string, options: RequestInit) => real(new URL(path, `${url}/vpn/`), options));
  return { asked };
}

/** The module `session` of the console. */
export interface Sessions {
  profile: { value: { role: string } | null | undefined };
  hasEnded: { value: boolean };
  startProblem: { value: string | null };
  openSession(): Promise<void>;
  logIn(email: string, password: string): Promise<object | null>;
  passSecondStep(step: object, proof: object): Promise<void>;
  logOut(): Promise<void>;
  changePassword(fields: object): Promise<object>;
  canEdit(): boolean;
  canAdminister(): boolean;
  isLimited(): boolean;
  isOwner(): boolean;
}

/** The client of the console. Its types need the library of a browser, which tests lack. */
export interface ConsoleClient {
  ApiError: new (status: number, message: string) => Error;
  isOutage(error: unknown): boolean;
  isOutcomeUnknown(error: unknown): boolean;
  sessionsEnded: { value: number };
  isOutOfReach: { value: boolean };
  storeSessionKey(key: string | null): void;
  send(method: string, path: string, options?: object): Promise<Response>;
  call(method: string, path: string, body?: unknown): Promise<unknown>;
  readList(path: string): Promise<readonly unknown[]>;
}

/** Loads a module of the console for a browser, which reads its globals then. */
export async function loadModule<Module>(name: string): Promise<Module> {
  return (await import(`../../src/console/${name}.ts`)) as Module;
}

/** What a promise fails with; fails itself when it doesn't. */
export const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable(),
    (error: { status?: number; message: string; fields?: object }) => error,
  );
