import { expect, test } from 'vitest';
import { dnsNameOf } from '../../src/console/logic/peers/peer-text.ts';

test('the name of a peer on hosts', () => {
  const office = { id: 7, name: 'Main Office' };
  expect(dnsNameOf({ id: 2, name: 'Web 1' }, office)).toBe('web-1.main-office.cpn.internal');
  expect(dnsNameOf({ id: 2, name: '北京-web', dns_label: 'beijing-web' }, office)).toBe(
    'beijing-web.main-office.cpn.internal',
  );
  expect(dnsNameOf({ id: 2, name: '北京' }, { id: 7, name: '办公室' })).toBe('peer-2.network-7.cpn.internal');
});
