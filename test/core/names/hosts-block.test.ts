import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findBlock, linesOf, renderBlock, replaceBlock } from '../../../src/core/names/hosts-block.ts';
import { address, network, networks, peer } from '../samples.ts';

const begin = '# BEGIN cpn cpn0 (written by cpn; edits are lost)\n';
const end = '# END cpn cpn0\n';
const block = `${begin}10.77.0.1 edge.office.cpn.internal\n${end}`;
const machine = '127.0.0.1 localhost\n::1 localhost\n';

/** Files as people have them: any bytes, other networks' blocks, no newline at the end, carriage returns. */
const line = fc.oneof(
  fc.constantFrom(
    '127.0.0.1 localhost',
    '',
    '\r',
    '# BEGIN cpn cpn01 (written by cpn; edits are lost)',
    '# END cpn cpn01',
  ),
  fc.constantFrom('# BEGIN cpn', '#END cpn cpn0', ' # BEGIN cpn cpn0', '# BEGIN cpn cpn0x'),
  fc.string({ unit: 'binary' }),
);
const texts = fc
  .tuple(fc.array(line), fc.boolean())
  .map(([lines, ended]) => lines.join('\n') + (ended && lines.length > 0 ? '\n' : ''));
const blocks = fc
  .tuple(networks, fc.constantFrom('office', 'lab'))
  .map(([map, label]) => renderBlock('cpn0', map, label));

describe('a block', () => {
  it('has a line a peer, in the order of their ids', () => {
    const named = (id: number, name: string) => peer(id, { name, address: address(`10.77.0.${id}`) });
    expect(renderBlock('cpn0', network([named(3, 'Edge 1'), named(2, 'edge-1'), named(10, 'db')]), 'office')).toBe(
      [
        begin,
        '10.77.0.2 edge-1.office.cpn.internal\n',
        '10.77.0.3 edge-1-3.office.cpn.internal\n',
        '10.77.0.10 db.office.cpn.internal\n',
        end,
      ].join(''),
    );
  });

  it('is put behind what is there, and in front of a last line without an end', () => {
    expect(replaceBlock(machine, 'cpn0', block)).toBe(`${machine}${block}`);
    expect(replaceBlock('', 'cpn0', block)).toBe(block);
    expect(replaceBlock('127.0.0.1 localhost', 'cpn0', block)).toBe(`${block}127.0.0.1 localhost`);
  });

  it('is found by its marks, also after an editor went over it', () => {
    expect(findBlock(`${machine}${block}1.1.1.1 one\n`, 'cpn0')).toEqual({ block, isWhole: true });
    expect(findBlock(`${machine}${block}`, 'cpn01')).toEqual({ block: null, isWhole: true });
    const edited = block.replaceAll('\n', '\r\n');
    expect(replaceBlock(`${machine}${edited}`, 'cpn0', block)).toBe(`${machine}${block}`);
    expect(replaceBlock(`${machine}${block.trimEnd()}`, 'cpn0', block)).toBe(`${machine}${block}`);
  });

  it('that is there twice becomes one', () => {
    expect(replaceBlock(`${block}${machine}${block}`, 'cpn0', block)).toBe(`${block}${machine}`);
    expect(replaceBlock(`${block}${machine}${block}`, 'cpn0', null)).toBe(machine);
  });

  it.each([
    ['its end', `${begin}10.77.0.1 edge\n${machine}`],
    ['its end, before another', `${begin}10.77.0.1 edge\n${machine}${block}`],
    ['its beginning', `${machine}10.77.0.1 edge\n${end}${machine}`],
    ['everything but its end', end.trimEnd()],
  ])('that lost %s is left alone, and all around it', (_what, text) => {
    expect(findBlock(text, 'cpn0').isWhole).toBe(false);
    expect(findBlock(text, 'cpn0').block).not.toBeNull();
    for (const wanted of [block, null]) expect(replaceBlock(text, 'cpn0', wanted)).toBe(text);
  });

  it('comes, changes and goes without another byte being touched', () => {
    fc.assert(
      fc.property(texts, blocks, blocks, (text, one, other) => {
        const first = replaceBlock(text, 'cpn0', one);
        expect(findBlock(first, 'cpn0')).toEqual({ block: one, isWhole: true });
        expect(replaceBlock(first, 'cpn0', one)).toBe(first);
        const second = replaceBlock(first, 'cpn0', other);
        expect(second).toBe(replaceBlock(text, 'cpn0', other));
        expect(replaceBlock(second, 'cpn0', null)).toBe(text);
      }),
    );
  });

  it('leaves the block of another network alone', () => {
    fc.assert(
      fc.property(texts, blocks, (text, one) => {
        const other = one.replaceAll('cpn cpn0', 'cpn wg.1');
        const both = replaceBlock(replaceBlock(text, 'cpn0', one), 'wg.1', other);
        expect([findBlock(both, 'cpn0').block, findBlock(both, 'wg.1').block]).toEqual([one, other]);
        expect(replaceBlock(replaceBlock(both, 'cpn0', null), 'wg.1', null)).toBe(text);
      }),
    );
  });

  it('has only comments and names under cpn.internal', () => {
    fc.assert(
      fc.property(networks, fc.string({ unit: 'binary' }), (map, name) => {
        const peers = map.peers.map((each) => ({ ...each, name }));
        const lines = linesOf(renderBlock('cpn0', { ...map, peers }, 'office'));
        expect(lines).toHaveLength(peers.length);
        for (const each of lines) expect(each).toMatch(/^10\.77\.0\.\d+ [a-z0-9-]+\.office\.cpn\.internal$/);
      }),
    );
  });
});
