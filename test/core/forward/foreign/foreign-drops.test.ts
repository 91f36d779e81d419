import { expect, it } from 'vitest';
import type { ForwardDrop } from '../../../../src/core/forward/foreign/find-drops.ts';
import { findDroppedRoutes } from '../../../../src/core/forward/foreign/foreign-drops.ts';
import type { ForwardPath } from '../../../../src/core/forward/foreign/path.ts';
import { prefix } from '../../samples.ts';

const cidr = prefix('10.77.0.0/24');
const lan = prefix('192.168.50.0/24');
const out = (oif: string): ForwardPath => ({ iif: 'cpn0', oif, from: cidr, to: lan, state: 'new' });
const back = (iif: string): ForwardPath => ({ iif, oif: 'cpn0', from: lan, to: cidr, state: 'established' });
const relayed: ForwardPath = { iif: 'cpn0', oif: 'cpn0', from: cidr, to: cidr, state: 'new' };
const paths = [out('eth1'), back('eth1'), out('eth2'), back('eth2'), relayed];
const drop = (closed: readonly ForwardPath[], changes: Partial<ForwardDrop> = {}): ForwardDrop => ({
  ...{ family: 'ip', table: 'filter', chain: 'FORWARD', reason: 'policy drop of chain FORWARD', author: 'docker' },
  ...{ remedy: 'type', paths: closed, some: [], ...changes },
});

it.each([
  ['no way out', [drop([out('eth1'), out('eth2')])], true],
  ['no way out, for two reasons', [drop([out('eth1')]), drop([out('eth2')], { table: 'other' })], true],
  ['no way back', [drop([back('eth1'), back('eth2')])], true],
  ['a way by another interface', [drop([out('eth1'), back('eth1')])], false],
  ['a way to some addresses', [drop(paths, { some: [{ first: 1n, last: 2n }] })], false],
  ['a way to published ports', [drop(paths, { letsPublished: true })], false],
  ['a way out, closed in the state of answers', [drop([{ ...out('eth1'), state: 'established' }, out('eth2')])], false],
  ['a way out from elsewhere closed', [drop([{ ...out('eth1'), from: prefix('10.0.0.0/8') }, out('eth2')])], false],
  ['only its relaying closed', [drop([relayed])], false],
  ['nothing closed', [], false],
])('a route is dropped, or not, with %s', (_, drops, expected) => {
  expect([...findDroppedRoutes(paths, drops).keys()]).toEqual(expected ? [lan] : []);
});
