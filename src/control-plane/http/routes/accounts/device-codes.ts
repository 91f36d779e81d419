import { normalizeIP } from '@fastify/rate-limit';
import * as z from 'zod';
import { Session } from '../../../../contract/auth.ts';
import {
  DecideDeviceCode,
  DeviceCode,
  DeviceDecision,
  DeviceRequest,
  RedeemDeviceCode,
  StartDeviceCode,
  UserCode,
} from '../../../../contract/device-code.ts';
import { Refusal, reply } from '../../../../contract/reply.ts';
import { Secret } from '../../../../core/crypto/secret.ts';
import { createBoundedCache } from '../../../bounded-cache.ts';
import { readersInSession } from '../../../domain/caller.ts';
import { hashToken } from '../../../domain/tokens.ts';
import { DeviceCodeRefused, InvalidRequest, NotFound } from '../../../errors.ts';
import {
  decideDeviceLogin,
  formatUserCode,
  readDeviceLogin,
  redeemDeviceCode,
  startDeviceLogin,
  validSeconds,
} from '../../../service/accounts/device-codes.ts';
import type { Context } from '../../../service/context.ts';
import { type App, userOf } from '../../app.ts';
import type { FailureLimit } from '../../limits.ts';
import { isHostOf } from '../../session-cookie.ts';

const UserCodePath = z.object({ user_code: UserCode });

/** Seconds between two requests of a device for its session, and how much earlier one may be. */
const interval = 3;
const toleratedSeconds = 1;

export interface DeviceCodeLimits {
  readonly limitLogins: FailureLimit;
  /** Counts unknown user codes. */
  readonly limitGuesses: FailureLimit;
}

/** @param hasConsole false if no page can approve a login, so that none is started */
export function addDeviceCodeRoutes(
  app: App,
  context: Context,
  hasConsole: boolean,
  { limitLogins, limitGuesses }: DeviceCodeLimits,
): void {
  const keepsPace = createPace(context.steadyNow);

  app.route({
    method: 'POST',
    url: '/api/auth/device-codes',
    config: { access: 'anyone' },
    schema: {
      operationId: 'startDeviceLogin',
      summary: 'Start a login that a person approves in the console (RFC 8628)',
      description:
        'The reply has two codes: the device keeps the device code, and shows the user code. With code_challenge and redirect_port, the ' +
        'console returns to a port of the same machine. There may be 20 open codes from an address, and 1000 in all. A 404 where the ' +
        'control plane serves no console.',
      body: StartDeviceCode,
      response: { 201: reply(DeviceCode), 404: Refusal },
    },
    handler: async (request, response) => {
      if (!hasConsole) throw new NotFound('console');
      const { device_name: device = '', code_challenge: challenge, redirect_port: redirectPort } = request.body;
      const page = `${findConsole(request, context.publicUrls).href}#/device`;
      const { deviceCode, userCode } = await startDeviceLogin(context, {
        ...{ device, challenge, redirectPort, address: request.ip, origin: normalizeIP(request.ip) },
      });
      const data = {
        ...{ device_code: deviceCode.reveal(), user_code: userCode, expires_in: validSeconds, interval },
        ...{ verification_uri: page, verification_uri_complete: `${page}/${userCode}` },
      };
      return response.code(201).send({ data });
    },
  });

  app.route({
    method: 'POST',
    url: '/api/auth/device-codes/token',
    config: { access: 'anyone' },
    schema: {
      operationId: 'redeemDeviceCode',
      summary: 'Open the session of an approved device code, once',
      description:
        'A 400 with authorization_pending means that no user has decided yet, and with slow_down that the device polls more often than every ' +
        'interval. An approval is usable for 2 minutes, and while the session that gave it is valid.',
      body: RedeemDeviceCode,
      response: { 200: reply(Session), 400: Refusal },
    },
    handler: async (request) => {
      const { device_code, code, code_verifier: verifier } = request.body;
      const deviceCode = new Secret(device_code);
      const { token, expiresAt } = await redeemDeviceCode(context, {
        ...{ deviceCode, address: request.ip },
        redirectCode: code === undefined ? undefined : new Secret(code),
        verifier: verifier === undefined ? undefined : new Secret(verifier),
      }).catch((error: unknown) => {
        const isPending = error instanceof DeviceCodeRefused && error.code === 'authorization_pending';
        throw isPending && !keepsPace(hashToken(deviceCode)) ? new DeviceCodeRefused('slow_down') : error;
      });
      return { data: { access_token: token.reveal(), token_type: 'Bearer' as const, expires_at: expiresAt } };
    },
  });

  app.route({
    method: 'GET',
    url: '/api/auth/device-codes/:user_code',
    config: { access: readersInSession },
    schema: {
      operationId: 'readDeviceLogin',
      summary: 'The login that waits for an approval with this user code',
      description: 'After as many unknown codes as there may be failed logins in a minute, this session gets a 429.',
      params: UserCodePath,
      response: { 200: reply(DeviceRequest), 404: Refusal },
    },
    handler: async (request) => {
      const { user_code: userCode } = request.params;
      const { name, ...asked } = await limitGuesses(request, 'code', () => readDeviceLogin(context, userCode));
      const same_address = asked.address === request.ip;
      return { data: { ...asked, user_code: formatUserCode(userCode), device_name: name, same_address } };
    },
  });

  app.route({
    method: 'POST',
    url: '/api/auth/device-codes/:user_code/approval',
    config: { access: readersInSession },
    schema: {
      operationId: 'decideDeviceLogin',
      summary: 'Approve or refuse a login of a device',
      description:
        'An approval lets the device log in as the caller. It needs the password where the login of that session is more than 5 minutes ago. ' +
        'A wrong password is a 403, and after as many as there may be failed logins in a minute, this session gets a 429. The first decision counts.',
      params: UserCodePath,
      body: DecideDeviceCode,
      response: { 200: reply(DeviceDecision), 404: Refusal },
    },
    handler: async (request) => {
      const decide = () =>
        limitGuesses(request, 'code', () =>
          decideDeviceLogin(context, userOf(request), request.params.user_code, request.body),
        );
      const isGuess = request.body.password !== undefined;
      return { data: await (isGuess ? limitLogins(request, 'password', decide) : decide()) };
    },
  });
}

/** True for an error that an unknown user code causes. */
export const isUnknownCode = (error: unknown): boolean => error instanceof NotFound;

/** The address at which this client opens the console. */
function findConsole(
  { protocol, host }: { readonly protocol: string; readonly host: string },
  urls: readonly URL[],
): URL {
  const known = urls.find((url) => isHostOf(host, url)) ?? urls[0];
  if (known !== undefined) return known;
  const own = URL.parse(`${protocol}://${host}/`);
  if (own === null) throw new InvalidRequest({ host: ['must be the host of the control plane'] });
  return own;
}

const mostPaced = 5000;

/** Returns a function that is false if the last call for a code is less than an interval ago. */
function createPace(steadyNow: () => number): (code: string) => boolean {
  const latest = createBoundedCache<string, number>(mostPaced);
  return (code) => {
    const [now, before] = [steadyNow(), latest.get(code)];
    latest.set(code, now);
    return before === undefined || now - before >= (interval - toleratedSeconds) * 1000;
  };
}
