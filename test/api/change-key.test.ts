import { describe, expect, test } from 'vitest';
import { parsePublicKey } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { Refused } from '../../src/core/errors/index.ts';
import { connectPeerService } from './described-service.ts';
import { failureOf, keyOf, peerBody, unhurried } from './samples.ts';
import { brokenOff, json, serve } from './server.ts';

const token = new Secret('token-sample');
const key = parsePublicKey(keyOf(2));
const proof = { serial: 5, signature: `${'A'.repeat(86)}==` };

describe('changeKey', () => {
  test('sends key and proof, and the same again where the reply was lost', async () => {
    const { address, asked } = await serve(brokenOff, json(200, { data: peerBody(1, { public_key: keyOf(2) }) }));
    expect(await connectPeerService(address, unhurried().options).changeKey(7, 1, token, key, proof)).toBe(true);
    expect(asked).toHaveLength(2);
    for (const { method, path, headers, body } of asked) {
      expect([method, path, headers.authorization]).toEqual([
        'PATCH',
        '/api/networks/7/peers/1',
        'Bearer token-sample',
      ]);
      expect(JSON.parse(body)).toEqual({ public_key: keyOf(2), key_proof: proof });
    }
  });

  test('sends no proof where there is none', async () => {
    const { address, asked } = await serve(json(200, { data: peerBody(1, { public_key: keyOf(2) }) }));
    await connectPeerService(address).changeKey(7, 1, token, key, null);
    expect(JSON.parse(asked[0]?.body ?? '')).toEqual({ public_key: keyOf(2) });
  });

  test('tells a service that does not know how: by its refusal, or because it takes no notice', async () => {
    for (const reply of [json(404, {}), json(405, {}), json(200, { data: peerBody(1) }), json(200, {})]) {
      const { address } = await serve(reply);
      expect(await connectPeerService(address).changeKey(7, 1, token, key, proof)).toBe(false);
    }
  });

  test('throws what the service says against it', async () => {
    const { address } = await serve(json(422, { message: 'no', errors: { key_proof: ['is old'] } }));
    const failure = await failureOf(connectPeerService(address).changeKey(7, 1, token, key, proof));
    expect(failure).toBeInstanceOf(Refused);
    expect(failure.message).toContain('is old');
  });
});
