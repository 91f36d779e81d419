import { readFile } from 'node:fs/promises';
import { Document, isScalar, visit } from 'yaml';
import { describeMistake } from '../../contract/describe-issue.ts';
import { AccessRule, RuleTest, SetRules } from '../../contract/rules.ts';
import { InvalidValue, quote, WrongUsage } from '../../core/errors/index.ts';
import { hasPorts, notPorts } from '../../core/map/access-rules.ts';
import { formatPorts, formatSelector, parsePorts, parseSelector } from '../../core/rules/selector.ts';
import { escapeUnshapely } from '../output/output.ts';
import type { FileRules } from './open-rules.ts';
import { type Locate, type Path, readYaml } from './read-yaml.ts';

/** Bytes: the limit of the control plane for rules. */
const mostBytes = 4 * 1024 * 1024;

const fileSchema = SetRules.omit({ confirm_within_seconds: true });

/** Rules, and where their file has them. */
export interface LocatedRules {
  readonly rules: FileRules;
  readonly at: Locate;
}

/** Reads rules from a file, or from standard input for `-`. @throws WrongUsage or InvalidValue */
export async function readRulesFile(path: string): Promise<LocatedRules> {
  const name = path === '-' ? 'standard input' : path;
  return parseRules(await readText(path, name), name);
}

async function readText(path: string, name: string): Promise<string> {
  const bytes = path === '-' ? await readInput() : await readFile(path).catch((error) => error as Error);
  if (bytes instanceof Error) {
    const { code } = bytes as NodeJS.ErrnoException;
    throw new WrongUsage(`${quote(name)} cannot be read (${code}); check the path and its permissions`);
  }
  if (bytes.length > mostBytes) throw new WrongUsage(`${quote(name)} has more than 4 MiB; name a file of rules`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new WrongUsage(`${quote(name)} is not UTF-8 text; name a file of rules`);
  }
}

async function readInput(): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of process.stdin) {
    chunks.push(Buffer.from(chunk));
    length += chunk.length;
    if (length > mostBytes) break;
  }
  return Buffer.concat(chunks);
}

/**
 * Parses rules in YAML or JSON. Refuses unknown fields, because a field with a typing error would
 * change who reaches what. @throws InvalidValue or WrongUsage with the line
 */
export function parseRules(text: string, name: string): LocatedRules {
  const { value: raw, at } = readYaml(text, name);
  const value = withPortsAsText(raw);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new WrongUsage(`${quote(name)} has no rules; write "mode: closed", and "rules:" with a list`);
  refuseUnknown(value, at);
  const { data, error } = fileSchema.safeParse(value);
  if (data === undefined) {
    const [issue] = error.issues;
    const path = (issue?.path ?? []) as Path;
    const wrong = valueAt(value, path);
    const { rule, remedy } = issue ? describeMistake(issue, wrong) : { rule: 'is not valid' };
    throw new InvalidValue(at(path), wrong ?? undefined, rule, remedy);
  }
  return { rules: readWords(data, at), at };
}

/** YAML reads the port 22 as a number. */
function withPortsAsText(value: unknown): unknown {
  const rules = member(value, 'rules');
  if (!Array.isArray(rules)) return value;
  return {
    ...(value as object),
    rules: rules.map((rule) => {
      const ports = member(rule, 'ports');
      if (!Array.isArray(ports)) return rule;
      return { ...rule, ports: ports.map((port) => (typeof port === 'number' ? String(port) : port)) };
    }),
  };
}

function refuseUnknown(value: object, at: Locate): void {
  refuseOthers(value, [], Object.keys(fileSchema.shape), at);
  for (const [list, fields] of [
    ['rules', Object.keys(AccessRule.shape)],
    ['tests', Object.keys(RuleTest.shape)],
  ] as const) {
    const entries = member(value, list);
    if (!Array.isArray(entries)) continue;
    for (const [index, entry] of entries.entries()) refuseOthers(entry, [list, index], fields, at);
  }
}

function refuseOthers(value: unknown, path: Path, fields: readonly string[], at: Locate): void {
  if (typeof value !== 'object' || value === null) return;
  const other = Object.keys(value).find((name) => !fields.includes(name));
  if (other === undefined) return;
  throw new WrongUsage(`${at([...path, other])} is no field of rules; the fields here are ${fields.join(', ')}`);
}

/** Parses selectors and ports, whose form no schema expresses. The service checks names. */
function readWords({ rules, tests, ...others }: FileRules, at: Locate): FileRules {
  const readSelector = (text: string, path: Path) => formatSelector(parseSelector(text, at(path)));
  return {
    ...others,
    rules: rules.map((rule, index) => {
      const readSide = (side: 'from' | 'to') =>
        rule[side].map((text, each) => readSelector(text, ['rules', index, side, each]));
      if (rule.ports.length > 0 && !hasPorts(rule.protocol))
        throw new InvalidValue(at(['rules', index, 'ports']), rule.ports.join(', '), notPorts);
      const ports = rule.ports.map((text, each) => formatPorts(parsePorts(text, at(['rules', index, 'ports', each]))));
      return { ...rule, from: readSide('from'), to: readSide('to'), ports };
    }),
    tests: tests.map((test, index) => {
      if (test.port !== undefined && !hasPorts(test.protocol))
        throw new InvalidValue(at(['tests', index, 'port']), test.port, notPorts);
      const from = readSelector(test.from, ['tests', index, 'from']);
      return { ...test, from, to: readSelector(test.to, ['tests', index, 'to']) };
    }),
  };
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((at, key) => member(at, key), value);
}

function member(value: unknown, name: string | number): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string | number, unknown>)[name]
    : undefined;
}

/** Formats rules for {@link parseRules}. The text is safe for a terminal. */
export function formatRules(rules: FileRules, comment?: string): string {
  const document = new Document({
    mode: rules.mode,
    ...(rules.require_enforcement && { require_enforcement: true }),
    rules: rules.rules.map(({ ports, protocol, ...rule }) => ({
      ...rule,
      ...(protocol !== 'any' && { protocol }),
      ...(ports.length > 0 && { ports: ports.map((port) => (/^[1-9]\d*$/.test(port) ? Number(port) : port)) }),
    })),
    ...(rules.tests.length > 0 && { tests: rules.tests }),
  });
  if (comment !== undefined) document.commentBefore = comment;
  visit(document, {
    Seq(_, list) {
      list.flow = list.items.every((item) => isScalar(item));
    },
    Scalar(_, scalar) {
      // Only quoted text may have escapes.
      const { value } = scalar;
      if (typeof value === 'string' && escapeUnshapely(value) !== value) scalar.type = 'QUOTE_DOUBLE';
    },
  });
  return escapeUnshapely(document.toString({ lineWidth: 0, flowCollectionPadding: false }));
}
