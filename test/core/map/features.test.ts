import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type Feature,
  features,
  findFeatures,
  isDescribedForAdmins,
  knownFeatures,
} from '../../../src/core/map/features.ts';
import { describeForeign } from '../../plain/foreign-description.ts';

describe('the features of a description', () => {
  it('are those of a control plane of an earlier version, which describes all but a later one', () => {
    const text = readFileSync(join(import.meta.dirname, '../../plain/control-plane-8ae2ea7.json'), 'utf8');
    const later: Feature[] = [
      ...([
        'enroll-identity-proof',
        'enroll-current-networks',
        'enroll-current-peers',
        'enroll-follows-relay',
        'enroll-enforces-rules',
      ] as const),
      ...(['map-removed', 'map-etag', 'map-instance', 'map-messages', 'map-deletion'] as const),
      ...(['peer-report', 'peer-follows-relay', 'peer-enforces-rules', 'peer-map'] as const),
      ...(['peer-refused', 'peer-masquerades', 'peer-paths'] as const),
    ];
    const earlier = features.filter((feature) => !later.includes(feature));
    expect(findFeatures(JSON.parse(text), '')).toEqual(earlier);
  });

  it.each<[string, object, readonly Feature[]]>([
    ['none of the contract alone', describeForeign(), []],
    [
      'headers',
      describeForeign({ enroll: ['IDEMPOTENCY-KEY'], read: ['Prefer'] }),
      ['enroll-idempotently', 'map-wait'],
    ],
    ['operations', describeForeign({ removal: true }), ['peer-removal']],
    ['fields', describeForeign({ change: ['name', 'endpoint', 'color'] }), ['peer-name', 'peer-endpoint']],
    ['fields of a reply, in its envelope', describeForeign({ replied: ['removed'] }), ['map-removed']],
    ['no fields of a body that says nothing of them', describeForeign({ change: [] }), []],
  ])('are %s', (_, document, found) => {
    expect(findFeatures(document, '')).toEqual(found);
  });

  it('for administrators are found apart from those of hosts', () => {
    const described = describeForeign({ changeNetwork: ['name', 'add_routes'] });
    expect(findFeatures(described, '')).toEqual([]);
    expect(isDescribedForAdmins('network-route-edits', described, '')).toBe(true);
    expect(isDescribedForAdmins('network-expected-routes', described, '')).toBe(false);
    expect(isDescribedForAdmins('network-route-edits', null, '')).toBe(false);
  });

  it('are found below the path of the base address', () => {
    const post = { parameters: [{ in: 'header', name: 'Idempotency-Key' }] };
    const described = { paths: { '/cp/api/networks/enroll': { post } } };
    expect(findFeatures(described, '/cp')).toEqual(['enroll-idempotently']);
    expect(findFeatures(described, '')).toEqual([]);
    expect(findFeatures({ ...described, servers: [{ url: '/cp' }] }, '/cp')).toEqual(['enroll-idempotently']);
  });

  it.each<[string, unknown]>([
    ['no object', []],
    ['nothing', null],
    ['a reply of another kind', { data: {} }],
    ['paths that are none', { openapi: '3.1.0', paths: 'no' }],
  ])('are unknown of %s', (_, document) => {
    expect(findFeatures(document, '')).toBeNull();
  });

  it.each<[string, unknown]>([
    ['references in a circle', { $ref: '#/paths/~1api~1networks~1enroll' }],
    ['references that lead nowhere', { $ref: '#/components/x/y/z' }],
    ['references to elsewhere', { $ref: 'https://203.0.113.1/enroll.json' }],
    ['references of another type', { $ref: 7 }],
    ['references with broken escapes', { $ref: '#/%zz' }],
    ['parameters that are no list', { post: { parameters: { in: 'header', name: 'Idempotency-Key' } } }],
    ['names that are none', { post: { parameters: [null, 7, { in: 'header', name: ['Idempotency-Key'] }] } }],
    ['a path item that is none', 'x'],
    ['inherited members', JSON.parse('{"__proto__": {"post": {"parameters": []}}}')],
  ])('are none where there are %s', (_, item) => {
    expect(findFeatures({ paths: { '/api/networks/enroll': item } }, '')).toEqual([]);
  });

  it('are found in bounded time, whatever refers to what', () => {
    const references = Array.from({ length: 1_000 }, (_, index) => ({ $ref: `#/components/schemas/S${index}` }));
    const schemas = Object.fromEntries(references.map((_, index) => [`S${index}`, { allOf: references }]));
    const content = { 'application/json': { schema: references[0] } };
    const paths = { '/api/networks/{network}/peers/{peer}': { patch: { requestBody: { content } } } };
    expect(findFeatures({ paths, components: { schemas } }, '')).toEqual([]);
  });

  it('of a later version are passed over where they were saved', () => {
    expect(knownFeatures(['map-wait', 'telepathy', 'enroll-identity'])).toEqual(['enroll-identity', 'map-wait']);
  });
});
