import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';

/** What a browser fetches of the console at most, compressed. */
const MOST_BYTES = 92 * 1024;

interface BuiltConsole {
  /** The files by their paths, each also compressed. */
  readonly files: ReadonlyMap<string, string | Uint8Array>;
  /** The sources of its script, for the notices. */
  readonly inputs: readonly string[];
  /** Of all files, compressed. */
  readonly bytes: number;
}

/**
 * Builds the console: a page, its script and its style, with the hashes of their contents in the
 * names of the last two.
 */
export async function buildConsole(root: string): Promise<BuiltConsole> {
  const folder = join(root, 'src/console');
  const { script, inputs } = await bundle(root);
  const style = minifyStyle(readFileSync(join(folder, 'style.css'), 'utf8'));
  const names = { script: nameOf('main', script, 'js'), style: nameOf('style', style, 'css') };
  const page = readFileSync(join(folder, 'index.html'), 'utf8')
    .replace('main.tsx', names.script)
    .replace('style.css', names.style);
  const texts = [
    ['index.html', page],
    [names.script, script],
    [names.style, style],
  ] as const;
  const compressed = texts.map(([name, text]) => [`${name}.gz`, gzipSync(text, { level: 9 })] as const);
  const bytes = compressed.reduce((sum, [, { length }]) => sum + length, 0);
  if (bytes > MOST_BYTES) throw new Error(`the console has ${bytes} bytes compressed; the limit is ${MOST_BYTES}`);
  return { files: new Map<string, string | Uint8Array>([...texts, ...compressed]), inputs, bytes };
}

async function bundle(root: string): Promise<{ script: string; inputs: string[] }> {
  const build = await rolldown({
    cwd: root,
    input: 'src/console/main.tsx',
    platform: 'browser',
    transform: { target: 'es2022' },
    onLog: (level, log, handle) => handle(log.code === 'UNRESOLVED_IMPORT' ? 'error' : level, log),
  });
  const { output } = await build.generate({ format: 'esm', minify: true, comments: { legal: false } });
  await build.close();
  const [chunk, ...others] = output;
  if (others.length > 0) throw new Error('the console is to be one script');
  return {
    script: chunk.code,
    inputs: chunk.moduleIds.filter((id) => !id.startsWith('\0')).map((id) => relative(root, id)),
  };
}

function minifyStyle(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,]) ?/g, '$1')
    .trim();
}

function nameOf(name: string, content: string, ending: string): string {
  return `assets/${name}-${createHash('sha256').update(content).digest('hex').slice(0, 12)}.${ending}`;
}
