import fc from 'fast-check';
import { allowedKeys } from '../../src/core/wg-quick/parse.ts';
import { renderConfig } from '../../src/core/wg-quick/render.ts';
import { hostile, mutated } from './hostile-texts.ts';
import { keys, ranges, tunnelConfigs } from './values.ts';

const ours = [...allowedKeys.Interface, ...allowedKeys.Peer];
const others = ['PostUp', 'PreUp', 'PostDown', 'PreDown', 'SaveConfig', 'Table', 'DNS', 'Jc', 'ReplacePeers', ''];

const spaces = fc.constantFrom('', ' ', ' ', '\t', '  ', '\r', '\v', '\u00a0', '\0');

const values: fc.Arbitrary<string> = fc.oneof(
  keys,
  keys.map((key) => `${key.slice(0, 42)}B=`),
  ranges,
  fc.array(ranges, { maxLength: 3 }).map((list) => list.join(', ')),
  fc.array(fc.ipV4(), { maxLength: 2 }).map((list) => list.join(' ,')),
  fc.array(ranges, { maxLength: 3 }).map((list) => list.join(' ')),
  ranges.map((range) => range.replace('.', '. ').replace('/', '\t/')),
  fc.tuple(fc.ipV4(), fc.nat(40)).map(([address, length]) => `${address}/${length}`),
  fc.tuple(fc.ipV4(), fc.nat(70_000)).map(([address, port]) => `${address}:${port}`),
  fc.constantFrom(
    'off',
    'Off',
    'OFF',
    '0',
    '25',
    '65535',
    '1420',
    '0x1',
    '0xca6c',
    '51820',
    '[2001:db8::1]:7',
    '10.0.0.1/24/7',
    'YOUR_KEY',
    '025',
    '10.0.0.0/08',
    '203.0.113.9:ntp',
    '203.0.113.9:00123',
    '2001:db8::1:7',
    '[203.0.113.9]:7',
    '[fe80::1%lo]:7',
  ),
  hostile,
);

/** A line as it may stand in such a file, or nearly so. */
const lines: fc.Arbitrary<string> = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '[Interface]',
      '[Peer]',
      '[peer]',
      '[INTERFACE]',
      '',
      '# x',
      ' ',
      '[Interface] # x',
      '[ Peer ]',
      '[ Interface ]',
      '[Peer',
    ),
  },
  { weight: 1, arbitrary: hostile },
  {
    weight: 4,
    arbitrary: fc
      .tuple(
        fc.constantFrom(...ours, ...ours, ...others),
        fc.nat(9),
        spaces,
        spaces,
        values,
        fc.constantFrom('', '', ' ', '\r', ' # x', '#'),
      )
      .map(
        ([key, letters, before, after, value, end]) =>
          `${letters === 0 ? key.toLowerCase() : letters === 1 ? key.replace(/(?=[KIP])/g, ' ') : key}${before}=${after}${value}${end}`,
      ),
  },
);

const rendered = tunnelConfigs.map(renderConfig);

/** Files of the program with a few changed lines or values. */
const edited = fc
  .tuple(rendered, fc.array(fc.tuple(fc.nat(1000), fc.nat(6), lines, values), { maxLength: 3 }))
  .map(([text, edits]) => {
    const all = text.split('\n');
    for (const [at, kind, line, value] of edits) {
      const index = at % all.length;
      const old = all[index] ?? '';
      const renewed = old.replace(/=.*/, () => `= ${value}`);
      all.splice(index, 1, ...([[line, old], [line], [], [old, old], [renewed], [old + value]][kind] ?? [renewed]));
    }
    return all.join('\n');
  });

/** What stands for ` = `, and what a line ends with. */
const spellings = [
  [' = ', '\n'],
  ['=', '\r\n'],
  ['\t= ', ' \n'],
  [' =', ' # x\n'],
];

/** With the spaces, letters and ends of lines that people use. */
const respelled = fc.tuple(edited, fc.nat(3), fc.nat(2)).map(([text, spacing, letters]) => {
  const spelled = letters === 0 ? text.replace(/^\[?\w+(?=\]| =)/gm, (word) => word.toLowerCase()) : text;
  const [separator = '=', end = '\n'] = spellings[spacing] ?? [];
  return spelled.replaceAll(' = ', separator).replaceAll('\n', end);
});

/** Texts that differ much or little from the program's own. */
export const configTexts: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: edited },
  { weight: 2, arbitrary: mutated(rendered, 3) },
  { weight: 4, arbitrary: respelled },
  { weight: 1, arbitrary: mutated(respelled, 2) },
  { weight: 1, arbitrary: fc.array(lines, { maxLength: 12 }).map((all) => ['[Interface]', ...all].join('\n')) },
  { weight: 1, arbitrary: fc.array(lines, { maxLength: 12 }).map((all) => all.join('\n')) },
);

/** Such texts of a service without the private key, as most are. */
export const givenTexts: fc.Arbitrary<string> = configTexts.map((text) =>
  text.replace(/^([\t ]*privatekey)[^\n]*/gim, '$1 = YOUR_PRIVATE_KEY'),
);
