import { describe, expect, test, vi } from 'vitest';
import { connectAdminService } from '../../../src/api/admin-service.ts';
import { resumePeer } from '../../../src/cli/commands/peer-suspension.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { readExpiry, requireExpiry } from '../../../src/cli/parse/expiry-flag.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import { peerBody, unhurried } from '../../api/samples.ts';
import { json, serve } from '../../api/server.ts';
import { describeForeign } from '../../plain/foreign-description.ts';

const now = new Date('2030-01-31T12:00:00.000Z');
const read = (expires?: string) => readExpiry(new Input({ expires }, resumePeer.flags, {}), now);

describe('when a peer expires', () => {
  test.each([
    [undefined, undefined],
    ['never', null],
    ['12h', '2030-02-01T00:00:00.000Z'],
    ['90d', '2030-05-01T12:00:00.000Z'],
    ['2030-02-28', '2030-02-28T00:00:00.000Z'],
    ['2030-02-01T18:00+02:00', '2030-02-01T16:00:00.000Z'],
  ])('%j is %j, whatever the time zone of this host', (text, expected) => {
    for (const zone of ['UTC', 'America/St_Johns', 'Asia/Kolkata']) {
      vi.stubEnv('TZ', zone);
      expect([zone, read(text)]).toEqual([zone, expected]);
    }
    vi.unstubAllEnvs();
  });

  test.each(['90', '90m', 'tomorrow', '2030-02-30', '2030-13-01', '2030-02-01T18:00', '-1d'])(
    '%j is no time',
    (text) => {
      expect(() => read(text)).toThrow(InvalidValue);
    },
  );
});

/** The service with a description that names these fields of a peer. */
async function connect(change: readonly string[]) {
  const out = { ...peerBody(9), suspended_at: '2030-01-01T00:00:00.000Z', expires_at: '2030-02-01T00:00:00.000Z' };
  const { address, asked } = await serve((response, request) =>
    json(200, request.path.startsWith('/docs') ? describeForeign({ change }) : { data: [out] })(response, request),
  );
  return { service: connectAdminService(address, new Secret('token-sample'), unhurried().options), asked, out };
}

test('a service that does not describe it is not asked to let a peer expire, nor who is suspended', async () => {
  const { service, asked } = await connect(['name']);
  await expect(requireExpiry(service)).rejects.toThrow('this control plane does not support the expiry of peers');
  expect(await service.listPeersOut(7)).toEqual([]);
  expect(asked.map(({ path }) => path)).toEqual(['/docs/api/openapi.json']);
});

test('a service that describes expiry is asked for the peers that are out', async () => {
  const { service, asked, out } = await connect(['suspended', 'expires_at']);
  await requireExpiry(service);
  const { suspended_at, expires_at } = out;
  expect(await service.listPeersOut(7)).toMatchObject([{ id: 9, suspended_at, expires_at }]);
  expect(asked.at(-1)?.path).toBe('/api/networks/7/peers?suspended=true');
});
