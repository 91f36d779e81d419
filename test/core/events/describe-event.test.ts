import { expect, it } from 'vitest';
import { describeDetails } from '../../../src/core/events/describe-event.ts';

it.each<[object, string]>([
  [{}, ''],
  [{ network: 1, role_before: 'admin' }, 'network: 1; role before: admin'],
  [{ routes: ['10.1.0.0/16', '10.2.0.0/16'], withdrawn: [] }, 'routes: 10.1.0.0/16, 10.2.0.0/16; withdrawn: none'],
  [{ endpoint: null, description: '', is_new: true }, 'endpoint: none; description: none; is new: yes'],
  [{ from: { id: 7, name: 'edge' }, to: { id: null, name: 'edge-2' } }, 'from: edge (7); to: edge-2'],
  [{ key_proof: { serial: 2, signature: 'abc=' } }, 'key proof: serial 2 signature abc='],
  [{ name: 'x; role: owner' }, 'name: "x; role: owner"'],
])('%j is %s', (details, text) => {
  expect(describeDetails({ ...details })).toBe(text);
});
