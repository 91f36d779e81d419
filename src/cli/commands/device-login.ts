import { createHash, randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DeviceLogin, DeviceLogins, RedirectProof, Session } from '../../api/device-login.ts';
import { Secret } from '../../core/crypto/secret.ts';
import { CpnError, printable, WrongUsage } from '../../core/errors/index.ts';
import { baseOf, type ServiceAddress } from '../../core/net/service-address.ts';
import { connectDeviceLogins } from '../admin.ts';
import { openPage } from '../context.ts';
import { listenForApproval } from '../input/approval-listener.ts';
import type { Input } from '../input/input.ts';
import { bold, endStep, note, printRemark, progress } from '../output/output.ts';
import { columnsOf } from '../output/terminal/fit.ts';

/** Milliseconds. Added to each pause after a request that was too early (RFC 8628, 3.5). */
const longerMs = 5_000;
/** How long after its expiry by this host's clock a login is polled on. */
const graceMs = 30_000;

/**
 * Logs in with an approval in the console: by a browser on this machine, else with a code that the
 * user types anywhere. Null if the service offers no such login.
 */
export async function logInOnPage(input: Input, service: ServiceAddress): Promise<Session | null> {
  const logins = await connectDeviceLogins(service);
  if (hasBrowser(input)) {
    const outcome = await logInByBrowser(logins, service);
    if (outcome !== 'no browser') return outcome;
    printRemark('no browser could be opened on this machine');
  }
  return logInByCode(logins, service);
}

/** False over SSH and under sudo: the browser of the user is not on this screen. */
function hasBrowser(input: Input): boolean {
  if (!input.switch('browser', true)) return false;
  const isSet = (...names: readonly string[]) => names.some((name) => (input.environment[name] ?? '') !== '');
  if (isSet('SSH_CONNECTION', 'SSH_CLIENT', 'SSH_TTY', 'SUDO_UID')) return false;
  return process.platform === 'darwin' || isSet('DISPLAY', 'WAYLAND_DISPLAY');
}

async function logInByBrowser(logins: DeviceLogins, service: ServiceAddress): Promise<Session | null | 'no browser'> {
  const state = mintSecret();
  const verifier = mintSecret();
  const listener = await listenForApproval(state);
  try {
    const challenge = createHash('sha256').update(verifier.reveal()).digest('base64url');
    const login = await logins.start(ownName(), { challenge, port: listener.port });
    if (login === null) return null;
    const page = findPage(login.wholePage, service);
    page.hash += `?state=${state.reveal()}`;
    const expiry = performance.now() + login.expiresInMs;
    if (!(await openPage(page))) return 'no browser';
    note(`approve the login ${bold(printable(login.userCode))} in your browser, or open this page on this machine:`);
    note(`  ${page.href}`);
    progress('waiting for the approval; for another machine, stop and use --no-browser');
    const over = new AbortController();
    const late = sleep(login.expiresInMs, null, { signal: over.signal }).catch(() => null);
    const code = await Promise.race([listener.answer, late]);
    over.abort();
    return await pollSession(logins, login, { expiry, proof: code && { code, verifier } });
  } finally {
    listener.close();
  }
}

async function logInByCode(logins: DeviceLogins, service: ServiceAddress): Promise<Session | null> {
  const login = await logins.start(ownName(), null);
  if (login === null) return null;
  const expiry = performance.now() + login.expiresInMs;
  const page = findPage(login.wholePage, service).href;
  await drawPage(page);
  note(`open ${findPage(login.page, service).href} in a browser, and type the code ${bold(printable(login.userCode))}`);
  note(`or open ${page}`);
  progress('waiting for the approval');
  return pollSession(logins, login, { expiry, proof: null });
}

interface Poll {
  /** By the monotonic clock. */
  readonly expiry: number;
  readonly proof: RedirectProof | null;
}

/** Requests the session until a user decided. A service that restarts meanwhile loses no login. */
async function pollSession(logins: DeviceLogins, login: DeviceLogin, { expiry, proof }: Poll): Promise<Session> {
  let pauseMs = login.intervalMs;
  let isLost = false;
  for (;;) {
    const isLast = performance.now() > expiry + graceMs;
    try {
      const result = await logins.redeem(login, proof);
      if ('token' in result) {
        endStep();
        return result;
      }
      if (isLast) throw result.refusal;
      if (result.isEarly) pauseMs += longerMs;
      isLost = false;
    } catch (error) {
      if (!(error instanceof CpnError && error.isRetryable) || isLast) throw error;
      if (!isLost) printRemark(`${error.message}; the login goes on`);
      isLost = true;
    }
    await sleep(pauseMs);
  }
}

/** A console at the host of the service has its scheme and path, which a proxy may hide from it. */
function findPage(stated: URL, service: ServiceAddress): URL {
  const base = baseOf(service);
  if (stated.hostname !== base.hostname || service.url.startsWith('unix:')) return stated;
  const page = new URL(`${base.href.replace(/\/$/, '')}/`);
  page.hash = stated.hash;
  return page;
}

/** Draws the page's address for a phone, on a terminal that is wide enough. */
async function drawPage(page: string): Promise<void> {
  if (process.stderr.isTTY !== true) return;
  const { drawCode } = await import('../output/terminal/qr-code.ts');
  try {
    note(drawCode(page, columnsOf(process.stderr)));
  } catch (error) {
    if (!(error instanceof WrongUsage)) throw error;
  }
}

const ownName = () => `cpn on ${hostname()}`;

const mintSecret = () => new Secret(randomBytes(32).toString('base64url'));
