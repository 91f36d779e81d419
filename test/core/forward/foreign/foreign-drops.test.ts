import { expect, it } from 'vitest';
import type { ForwardDrop } from '../../../../src/core/forward/foreign/find-drops.ts';
import { findDroppedRoutes } from '../../../../src/core/forward/foreign/foreign-drops.ts';
import type { ForwardPath } from '../../../../src/core/forward/foreign/path.ts';
import type { Prefix } from '../../../../src/core/net/cidr.ts';
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

it.each<[string, ForwardDrop[], Prefix[]]>([
  ['no way out', [drop([out('eth1'), out('eth2')])], [lan]],
  ['no way out, for two reasons', [drop([out('eth1')]), drop([out('eth2')], { table: 'other' })], [lan]],
  ['no way back', [drop([back('eth1'), back('eth2')])], [lan]],
  ['a way by another interface', [drop([out('eth1'), back('eth1')])], []],
  ['a way to some addresses', [drop(paths, { some: [{ first: 1n, last: 2n }] })], []],
  ['a way to published ports', [drop(paths, { letsPublished: true })], []],
  ['a way out, closed in the state of answers', [drop([{ ...out('eth1'), state: 'established' }, out('eth2')])], []],
  ['a way out from elsewhere closed', [drop([{ ...out('eth1'), from: prefix('10.0.0.0/8') }, out('eth2')])], []],
  ['only its relaying closed', [drop([relayed])], [cidr]],
  ['nothing closed', [], []],
])('a route is dropped, or not, with %s', (_, drops, expected) => {
  expect([...findDroppedRoutes(paths, drops).keys()]).toEqual(expected);
});
