import { LineCounter, parseDocument, visit, type YAMLError, type Document as YamlDocument } from 'yaml';
import { quote, WrongUsage } from '../../core/errors/index.ts';

export type Path = readonly (string | number)[];

/** Formats the place of a value, as in `"rules.yaml", line 3: rules[0].to[1]`. */
export type Locate = (path: Path) => string;

interface LocatedValue {
  readonly value: unknown;
  readonly at: Locate;
}

/** Parses one document of YAML or JSON, which is YAML too. @throws WrongUsage with the line */
export function readYaml(text: string, name: string): LocatedValue {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const lineAt = (offset = 0) => `${quote(name)}, line ${lines.linePos(offset).line}`;
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) throw new WrongUsage(`${lineAt(problem.pos[0])}: ${describeProblem(problem)}`);
  const unknown = findUnknownAlias(document);
  if (unknown !== null) throw new WrongUsage(`${lineAt(unknown)}: ${remedies.BAD_ALIAS}`);
  return {
    value: toValue(document, name),
    at: (path) => `${lineAt(offsetOf(document, path))}: ${formatPath(path)}`,
  };
}

/** The most frequent mistakes. For the others, the library names what it expects. */
const remedies = {
  BAD_ALIAS: 'text that begins with * needs quotes; all peers and routes are any',
  BAD_SCALAR_START: 'text that begins with @, ` or % needs quotes',
  BLOCK_AS_IMPLICIT_KEY: 'text with ": " needs quotes, and each field its own line',
  DUPLICATE_KEY: 'the field is there twice; leave one out',
  MULTIPLE_DOCS: 'a second document begins here; write one document, without "---" in between',
  TAB_AS_INDENT: 'a tab is no indentation; indent with spaces',
  TAG_RESOLVE_FAILED: 'text that begins with ! needs quotes',
};

function describeProblem({ code, message }: YAMLError): string {
  if (Object.hasOwn(remedies, code)) return remedies[code as keyof typeof remedies];
  const [first = ''] = message.split(/ at line |:?\n/);
  return `${first}; correct it`;
}

function findUnknownAlias(document: YamlDocument.Parsed): number | null {
  let found: number | null = null;
  const anchors = new Set<string>();
  visit(document, {
    Node(_, { anchor }) {
      if (anchor !== undefined) anchors.add(anchor);
    },
    Alias(_, { source, range }) {
      if (anchors.has(source)) return undefined;
      found = range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  return found;
}

/** Aliases may repeat a list, within the limit of the library against a file that explodes. */
function toValue(document: YamlDocument.Parsed, name: string): unknown {
  try {
    return document.toJS();
  } catch {
    throw new WrongUsage(`${quote(name)} repeats its lists by aliases too often; write the lists in full`);
  }
}

/** The offset of the value at this path, or of the nearest one around it. */
function offsetOf(document: YamlDocument.Parsed, path: Path): number {
  for (let length = path.length; length > 0; length -= 1) {
    const node = document.getIn(path.slice(0, length), true) as { readonly range?: readonly number[] } | undefined;
    if (node?.range?.[0] !== undefined) return node.range[0];
  }
  return 0;
}

/** `rules[2].ports[0]`. */
function formatPath(path: Path): string {
  const text = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('');
  return text === '' ? 'the file' : text.replace(/^\./, '');
}
