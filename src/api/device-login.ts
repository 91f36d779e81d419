import * as z from 'zod';
import { DeviceCodeError, RedeemDeviceCode, StartDeviceCode } from '../contract/device-code.ts';
import type { Secret } from '../core/crypto/secret.ts';
import { BadReply, Refused } from '../core/errors/index.ts';
import type { ServiceAddress } from '../core/net/service-address.ts';
import { checkRequest } from './check-request.ts';
import { decodeSession, type Session } from './decode/admin.ts';
import { decodeDeviceCode } from './decode/extensions.ts';
import { readAdminFeatures } from './description.ts';
import { HttpClient } from './http/client.ts';
import type { ClientOptions } from './http/client-options.ts';

export type { Session };

/** A login that waits for an approval in the console. */
export interface DeviceLogin {
  readonly deviceCode: Secret;
  /** As the service shows it. */
  readonly userCode: string;
  readonly page: URL;
  /** The page with the user code filled in. */
  readonly wholePage: URL;
  readonly expiresInMs: number;
  readonly intervalMs: number;
}

/** PKCE for a browser on this machine (RFC 7636). */
export interface Redirect {
  readonly challenge: string;
  readonly port: number;
}

/** The two secrets that a login with a {@link Redirect} needs in addition. */
export interface RedirectProof {
  readonly code: Secret;
  readonly verifier: Secret;
}

/** No user has decided yet. `isEarly` if the service requests a longer interval. */
export interface Pending {
  readonly isEarly: boolean;
  readonly refusal: Refused;
}

/** Logins that a user approves in the console (RFC 8628). */
export interface DeviceLogins {
  /** Null if the service offers none. */
  start(device: string, redirect: Redirect | null): Promise<DeviceLogin | null>;
  /** The session, once, by one attempt. @throws Refused if refused or expired */
  redeem(login: DeviceLogin, proof: RedirectProof | null): Promise<Session | Pending>;
}

/** Seconds. Another service could have the login polled for days, or without a pause. */
const longestLogin = 3600;
const longestInterval = 60;
const redeemDeadlineMs = 15_000;
const root = '/api/auth/device-codes';
const body = z.object({ error: DeviceCodeError });

export function connectDeviceLogins(address: ServiceAddress, options: ClientOptions = {}): DeviceLogins {
  const http = new HttpClient(address, options);
  const poller = new HttpClient(address, { ...options, attempts: 1, deadlineMs: redeemDeadlineMs });
  const describes = readAdminFeatures(address, options);
  return {
    async start(device, redirect) {
      if (!(await describes('device-login'))) return null;
      const json = checkRequest(StartDeviceCode, {
        device_name: device,
        ...(redirect && { code_challenge: redirect.challenge, redirect_port: redirect.port }),
      });
      try {
        const call = { method: 'POST', what: 'the login', path: root, json, answered: true } as const;
        // A login that is started twice expires.
        const { body, reading } = await http.call({ ...call, repeatable: true });
        const login = decodeDeviceCode(body, reading);
        return {
          ...{ deviceCode: login.device_code, userCode: login.user_code },
          page: parsePage(login.verification_uri, reading.url),
          wholePage: parsePage(login.verification_uri_complete, reading.url),
          expiresInMs: Math.min(Math.max(login.expires_in, 1), longestLogin) * 1000,
          intervalMs: Math.min(Math.max(login.interval, 1), longestInterval) * 1000,
        };
      } catch (error) {
        // The control plane serves no console.
        if (error instanceof Refused && (error.status === 404 || error.status === 405)) return null;
        throw error;
      }
    },

    async redeem({ deviceCode }, proof) {
      const json = checkRequest(RedeemDeviceCode, {
        device_code: deviceCode.reveal(),
        ...(proof && { code: proof.code.reveal(), code_verifier: proof.verifier.reveal() }),
      });
      let reason: DeviceCodeError | null = null;
      try {
        const { body, reading } = await poller.call({
          ...{ method: 'POST', what: 'the login', path: `${root}/token`, json, answered: true, repeatable: false },
          secrets: [deviceCode, ...(proof ? [proof.code, proof.verifier] : [])],
          onRefusal: ({ bytes }) => {
            reason = readReason(bytes);
          },
          remedies: { 400: 'run "cpn login" again' },
        });
        return decodeSession(body, reading);
      } catch (error) {
        const isPending = reason === 'authorization_pending' || reason === 'slow_down';
        if (error instanceof Refused && isPending) return { isEarly: reason === 'slow_down', refusal: error };
        throw error;
      }
    },
  };
}

/** A program of this host opens it. @throws BadReply */
function parsePage(text: string, service: string): URL {
  const url = URL.parse(text);
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url;
  throw new BadReply(service, 'names a console that is not at an http(s) URL', 'use --email');
}

function readReason(bytes: Buffer): DeviceCodeError | null {
  try {
    return body.safeParse(JSON.parse(bytes.toString('utf8'))).data?.error ?? null;
  } catch {
    return null;
  }
}
