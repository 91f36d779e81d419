import { expect, it } from 'vitest';
import { labelOf } from '../../../src/control-plane/domain/peer-label.ts';
import { peerFields } from '../../../src/core/map/peer-fields.ts';
import { toLabel } from '../../../src/core/names/label.ts';

it.each([
  ['北京-web', 'beijing-web'],
  ['北京', 'beijing'],
  ["Zoë's iPhone", 'zoes-iphone'],
  ['Zoë’s iPhone', 'zoes-iphone'],
  ['Größe 2', 'grosse-2'],
  ['Łódź', 'lodz'],
  ['Корпус 5', 'korpus-5'],
  ['プリンタ', 'purinta'],
  ['서울', 'seoul'],
  ['ＷＥＢ', 'web'],
  ['web-1', 'web-1'],
  ['DB.example.net', 'db-example-net'],
  ['one\ntwo 10.0.0.1', 'one-two-10-0-0-1'],
  ['../../etc', 'etc'],
])('the label of %j is %s', (name, label) => {
  expect(labelOf(name)).toBe(label);
});

const { max, pattern } = peerFields.label;

it('is a label that hosts accept, or empty, of any name', () => {
  for (const name of ['', '\u200b', '\u202e', '---', '\ud800', '龘'.repeat(120), '\u0007', "'''", '💻'.repeat(60)]) {
    const label = labelOf(name);
    expect(label === '' || pattern.test(label), JSON.stringify(name)).toBe(true);
    expect(label.length).toBeLessThanOrEqual(max);
  }
});

it.each(['web', 'web-1', '9', '', '-', '-web', 'web-', 'a--b', 'Web', 'a.b', 'a\n', 'é'])(
  'hosts accept %j as a label exactly if it is the label of itself',
  (text) => {
    expect(pattern.test(text)).toBe(text !== '' && toLabel(text) === text);
  },
);
