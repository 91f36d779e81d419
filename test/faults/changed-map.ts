import { createHash } from 'node:crypto';
import type { Crowd, MapChanges } from './proxy-fault.ts';

type Fields = Record<string, unknown>;

/** The body of an answer with the map in it, after changes; its ETag is in the header alone. */
export function changeMap(body: string, { network, peers = {}, without = [], crowd }: MapChanges): string {
  const { etag: _etag, ...data } = (JSON.parse(body) as { data: Fields & { peers: Fields[] } }).data;
  const changed = data.peers
    .filter((peer) => peers[String(peer.name)] !== null)
    .map((peer) => ({ ...peer, ...peers[String(peer.name)] }))
    .map((peer) => Object.fromEntries(Object.entries(peer).filter(([name]) => !without.includes(name))));
  const added = crowd ? Array.from({ length: crowd.count }, (_, index) => stranger(crowd, index)) : [];
  return JSON.stringify({ data: { ...data, peers: [...changed, ...added], ...network } });
}

/** A strong ETag for a body. */
export function tagOf(body: string): string {
  return `"changed-${createHash('sha256').update(body).digest('hex').slice(0, 16)}"`;
}

function stranger({ from, type, first = 0 }: Crowd, index: number): Fields {
  const number = first + index;
  return {
    id: 1_000_000 + number,
    name: `stranger-${number}`,
    peer_type: type,
    public_key: createHash('sha256').update(`stranger ${number}`).digest('base64'),
    address: addressAfter(from, index),
    endpoint: null,
    created_at: '2026-01-01T00:00:00.000Z',
  };
}

function addressAfter(first: string, steps: number): string {
  const number = first.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0) + steps;
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.');
}
