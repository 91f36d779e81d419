import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { completionFor } from '../src/cli/commands/completion.ts';
import { loadCommands } from '../src/cli/parse/commands.ts';
import { command } from './command.ts';
import { manualPages } from './manual/pages.ts';
import { dist, manifest, root, sourceDate } from './source.ts';

const commands = await loadCommands();

/**
 * Builds the npm package in a folder, and returns its path. The bundle holds all that it needs;
 * only the private Node remains a package of its own, so that npm fetches the one of its machine.
 */
export async function buildNpm(folder: string): Promise<string> {
  const stage = mkdtempSync(join(tmpdir(), 'cpn-npm-'));
  try {
    cpSync(dist, join(stage, 'dist'), { recursive: true });
    for (const file of ['README.md', 'LICENSE', 'CHANGELOG.md']) cpSync(join(root, file), join(stage, file));
    const date = new Date(sourceDate() * 1000).toISOString().slice(0, 10);
    const pages = manualPages(commands, { version: manifest.version, date });
    mkdirSync(join(stage, 'man'));
    for (const [file, page] of pages) writeFileSync(join(stage, 'man', file), page);
    mkdirSync(join(stage, 'completions'));
    for (const [shell, file] of [
      ['bash', 'cpn.bash'],
      ['zsh', '_cpn'],
      ['fish', 'cpn.fish'],
    ] as const) {
      writeFileSync(join(stage, 'completions', file), await completionFor(shell, commands));
    }
    writeFileSync(join(stage, 'package.json'), renderManifest([...pages.keys()]));
    mkdirSync(folder, { recursive: true });
    return join(folder, command(['npm', 'pack', '--silent', '--pack-destination', folder], { cwd: stage }).trim());
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

function renderManifest(pages: readonly string[]): string {
  const { name, description, license, type, bin, engines, optionalDependencies, keywords } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  );
  const { version } = manifest;
  const facts = { name, version, description, keywords, license, type, bin, engines, optionalDependencies };
  return `${JSON.stringify({ ...facts, man: pages.map((page) => `./man/${page}`) }, null, 2)}\n`;
}
