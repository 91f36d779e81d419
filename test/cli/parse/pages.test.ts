import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readCommandLine } from '../../../src/cli/program.ts';

const root = join(import.meta.dirname, '../../..');
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...readdirSync(join(root, 'docs')).flatMap((name) => (name.endsWith('.md') ? `docs/${name}` : [])),
];
const read = (page: string) => readFileSync(join(root, page), 'utf8');

/** The `cpn` commands of the shell blocks of a page, without what is piped or redirected. */
const commandsOf = (page: string) =>
  [...read(page).matchAll(/```sh\n(.*?)```/gs)]
    .flatMap(([, block = '']) => block.split('\n'))
    .flatMap((line) => /^cpn (.+?)(?= *(?:\d?[<>|&#]|$))/.exec(line)?.[1] ?? [])
    .map((line) => ({ page, line }));

/** The anchors of a page's headings. */
const anchorsOf = (page: string) =>
  [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^a-z0-9 -]/g, '')
      .replaceAll(' ', '-'),
  );

/** The files and folders of ours that a page names. */
const placesOf = (page: string) =>
  [...read(page).matchAll(/`((?:src|test|scripts|packaging|docs)\/[\w/.-]+)`/g)].map(([, place = '']) => ({
    page,
    place,
  }));

const links = pages.flatMap((page) =>
  [...read(page).matchAll(/\]\(([^):]+)\)/g)].map(([, target = '']) => ({ page, target })),
);

describe('the pages', () => {
  it.each(pages.flatMap(commandsOf))('$page: cpn $line', async ({ line }) => {
    const performed: string[] = [];
    await readCommandLine(line.split(/\s+/), {}, async ({ name }) => void performed.push(name));
    expect(performed).toEqual([expect.any(String)]);
  });

  it.each(links)('$page: $target is there', ({ page, target }) => {
    const [file, anchor] = target.split('#') as [string, string?];
    const path = file === '' ? page : join(dirname(page), file);
    expect(existsSync(join(root, path))).toBe(true);
    if (anchor !== undefined) expect(anchorsOf(path)).toContain(anchor);
  });

  it.each(pages.flatMap(placesOf))('$page: $place is there', ({ place }) => {
    expect(existsSync(join(root, place.replace(/(NAME|\*).*$/, '')))).toBe(true);
  });

  it('show every picture, each of at most 60 KiB', () => {
    const pictures = readdirSync(join(root, 'docs/console')).map((name) => join('docs/console', name));
    const shown = new Set(links.map(({ page, target }) => join(dirname(page), target)));
    expect(pictures.filter((picture) => !shown.has(picture))).toEqual([]);
    expect(pictures.filter((picture) => statSync(join(root, picture)).size > 60 * 1024)).toEqual([]);
  });

  it('README has at most 160 lines of at most 120 columns', () => {
    const lines = read('README.md').trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(160);
    expect(lines.filter((line) => [...line].length > 120)).toEqual([]);
  });
});
