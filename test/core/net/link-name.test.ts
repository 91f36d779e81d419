import { describe, expect, test } from 'vitest';
import { isPlainLinkName, parseLinkName } from '../../../src/core/net/link-name.ts';

describe('the name of an interface', () => {
  test.each(['cpn0', '_x', '9lives', 'wg-a.b_c', 'a', 'fifteen-letters'])('may be %s', (name) => {
    expect([parseLinkName(name), isPlainLinkName(name)]).toEqual([name, true]);
  });

  test.each(['', '.', '..', '-x', 'a/b', 'a b', 'a\nb', 'cpn0\n', '\ncpn0', 'x;y', 'a=b', 'ä', 'sixteen-letters-'])(
    'may not be %j: it stands in paths, arguments and packet rules',
    (name) => {
      expect(isPlainLinkName(name)).toBe(false);
      expect(() => parseLinkName(name, '--interface')).toThrow(
        /--interface.*is not an interface name; use 1 to 15 of letters/s,
      );
    },
  );

  test.each(['all', 'default', 'interfaces'])('may not be %s, which tools read as another thing', (name) => {
    expect(() => parseLinkName(name)).toThrow(/interface .*is not an interface name/);
    // The kernel may have an interface of that name all the same.
    expect(isPlainLinkName(name)).toBe(true);
  });
});
