import { describe, expect, it } from 'vitest';
import { decodeEnrollment } from '../../src/api/decode/enrollment.ts';
import { decodeMap } from '../../src/api/decode/map.ts';
import type { PublicKey } from '../../src/core/crypto/keys.ts';
import { BadReply } from '../../src/core/errors/index.ts';
import { forHosts, isDecided, kindOf } from './decoded-replies.ts';
import { maliciousReplies } from './malicious-replies.ts';
import type { MaliciousReply } from './malicious-reply.ts';
import { obeyed } from './payloads.ts';
import { keyOf, network, ownAddress } from './true-replies.ts';

const request = { self: keyOf('self'), secret: 'cpp_secret', revision: '"12"' };
const source = { url: 'http://203.0.113.1', secrets: [] };

const decode = (body: unknown) => decodeMap(body, source, { network: 7, etag: '"13"' });
const asked = { publicKey: request.self as PublicKey, name: 'host', type: 'origin', endpoint: null } as const;
const decodeJoin = (body: unknown) => decodeEnrollment(body, source, asked);

/** What a host would apply, or why there is nothing. */
function read<T>(reply: MaliciousReply, decodeBody: (body: unknown) => T): T | string {
  const text = Buffer.concat([...reply.make(request).bytes]).toString();
  try {
    return decodeBody(JSON.parse(text.slice(text.indexOf('\r\n\r\n'))));
  } catch (error) {
    expect(error).toBeInstanceOf(BadReply);
    return (error as BadReply).message;
  }
}

describe('the decoder of maps, without a host,', () => {
  const { peers: all, ...head } = decode({ data: network(request) });
  const decided = maliciousReplies.filter((reply) => reply.to === 'map' && isDecided(reply));

  it.each(decided.map((reply) => [reply.name, reply] as const))('decides about %s', (_, reply) => {
    const result = read(reply, decode);
    if ('refused' in reply.outcome) {
      expect(result).toEqual(expect.any(String));
      expect(result).not.toMatch(obeyed);
      return;
    }
    // Neither the network nor another peer differs from that of the true map.
    const { peers, skipped, ...rest } = result as ReturnType<typeof decode>;
    expect(rest).toEqual(head);
    expect(all).toEqual(expect.arrayContaining([...peers]));
    expect([peers.length >= all.length - 1, skipped?.length]).toEqual([true, 1]);
    expect(JSON.stringify(skipped)).not.toMatch(obeyed);
  });

  it('leaves some of each family and outcome, and all others, to the hosts of the lab', () => {
    const sent = forHosts(maliciousReplies);
    expect(new Set(sent.map(kindOf))).toEqual(new Set(maliciousReplies.map(kindOf)));
    expect(maliciousReplies.filter((reply) => !isDecided(reply) && !sent.includes(reply))).toEqual([]);
    expect(decided.length).toBeGreaterThan(500);
  });
});

describe('the decoder of enrolments, without a host,', () => {
  const decided = maliciousReplies.filter((reply) => reply.to === 'enrolment' && isDecided(reply));

  it.each(decided.map((reply) => [reply.name, reply] as const))('decides about %s', (_, reply) => {
    const result = read(reply, decodeJoin);
    if ('refused' in reply.outcome) {
      expect(result).toEqual(expect.any(String));
      expect(result).not.toMatch(obeyed);
      return;
    }
    const { map, peer } = result as ReturnType<typeof decodeJoin>;
    expect(peer.address).toBe(ownAddress);
    const { skipped, ...applied } = map;
    expect(JSON.stringify(applied)).not.toMatch(/owned/i);
    expect(JSON.stringify(skipped ?? [])).not.toMatch(obeyed);
    if ('skipped' in reply.outcome) expect(skipped).not.toEqual([]);
  });

  it('decides about more than 150', () => {
    expect(decided.length).toBeGreaterThan(150);
  });
});
