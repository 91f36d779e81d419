import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const repository = join(import.meta.dirname, '../..');
const PAGES = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/*.md'];
const pages = globSync(PAGES, { cwd: repository }).toSorted();

/** The text of a page without its fenced blocks. */
function readPage(path: string): string {
  return readFileSync(join(repository, path), 'utf8').replaceAll(/^```.*?^```/gms, '');
}

/** Returns the anchors that GitHub gives to the headings of a page. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of readPage(page).matchAll(/^#+ (.+)$/gm)) {
    const name = heading
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-');
    let anchor = name;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${name}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** Returns the relative links of a page whose file or anchor does not exist. */
function findBrokenLinks(page: string): string[] {
  const links = [...readPage(page).matchAll(/\]\(([^)\s]+)\)|\b(?:href|src)="([^"]+)"/g)].map(
    ([, link = '', attribute]) => attribute ?? link,
  );
  return links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? page : join(dirname(page), path);
    if (!existsSync(join(repository, target))) return true;
    return anchor !== undefined && !anchorsOf(target).has(anchor);
  });
}

const PLACES = ['src', 'test', 'scripts', 'packaging', 'docs'];
const entries = PLACES.flatMap((place) => [place, ...globSync(`${place}/**`, { cwd: repository })]);
const names = new Set(entries.map((entry) => basename(entry)));

/**
 * Returns the paths in code spans of a page that the repository does not have. NAME stands for any
 * name. A file name alone, or the name of a folder with a slash, may be that of any folder.
 */
function findMissingPaths(page: string): string[] {
  const spans = [...readPage(page).matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span.split(' ')[0] ?? '');
  return spans.filter((span) => {
    if (PLACES.some((place) => span.startsWith(`${place}/`))) {
      const pattern = span.replaceAll('NAME', '*').replace(/\/$/, '');
      return globSync(pattern, { cwd: repository }).length === 0;
    }
    return /^[\w.-]+(\.tsx?|\.cjs|\.sh|\.sha256|\/)$/.test(span) && !names.has(span.replace(/\/$/, ''));
  });
}

test.each(pages)('every link and anchor of %s leads somewhere', (page) => {
  expect(findBrokenLinks(page)).toEqual([]);
});

// The changelog names files as they were at the time.
test.each(pages.filter((page) => page !== 'CHANGELOG.md'))('every path in the text of %s exists', (page) => {
  expect(findMissingPaths(page)).toEqual([]);
});

test('the pages with links are found', () => {
  expect(pages.length).toBeGreaterThan(10);
  expect(anchorsOf('docs/hosts.md')).toContain('who-reaches-the-tunnel-address');
});
