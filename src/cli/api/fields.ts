import { quote, WrongUsage } from '../../core/errors/index.ts';

/** A field of a request: `routes[]=192.168.50.0/24` has the keys `routes` and an empty one. */
export interface ApiField {
  readonly flag: string;
  /** The text before the `=`. */
  readonly name: string;
  readonly keys: readonly string[];
  /** The text after the `=`. Null without one, which only `routes[]` allows, for an empty list. */
  readonly text: string | null;
}

type Node = string | number | boolean | null | Node[] | Branch;
type Branch = { [key: string]: Node };

/** Parses `k=v`, `a[b]=c` or `a[]=v`, as `gh api` does. */
export function parseField(given: string, flag: string): ApiField {
  const [, name = '', head, rest = '', value] = /^(([^[\]=]+)((?:\[[^[\]=]*\])*))(?:=(.*))?$/s.exec(given) ?? [];
  if (head === undefined || (value === undefined && !rest.endsWith('[]'))) {
    throw new WrongUsage(`${flag} ${quote(given.replace(/=.*$/s, '=...'))} is not a field; write NAME=VALUE`);
  }
  const keys = [head, ...[...rest.matchAll(/\[([^\]]*)\]/g)].map(([, key = '']) => key)];
  return { flag, name, keys, text: value ?? null };
}

/** The value of a `--field` text: true, false, null or a whole number, else the text. */
export function typed(text: string): string | number | boolean | null {
  if (text === 'true' || text === 'false') return text === 'true';
  if (text === 'null') return null;
  // Excludes 007, and integers that a number would round, because they may be codes.
  const isWhole = /^(0|-?[1-9][0-9]*)$/.test(text) && Number.isSafeInteger(Number(text));
  return isWhole ? Number(text) : text;
}

/** @throws WrongUsage for a field that is set twice */
export function toObject(fields: readonly { field: ApiField; value: Node }[]): object {
  return fields.reduce<Branch>((root, { field, value }) => {
    const keys = field.text === null ? field.keys.slice(0, -1) : field.keys;
    return plant(root, keys, field.text === null ? [] : value, field) as Branch;
  }, newBranch());
}

function plant(node: Node | undefined, [key, ...rest]: readonly string[], value: Node, field: ApiField): Node {
  if (key === undefined) {
    if (node !== undefined) throw clash(field);
    return value;
  }
  if (key === '') {
    const list = node ?? [];
    if (!Array.isArray(list)) throw clash(field);
    const last = list.at(-1);
    // `a[][x]=1 a[][y]=2 a[][x]=3` gives two objects. The second starts where a key repeats.
    if (isBranch(last) && rest[0] !== undefined && rest[0] !== '' && last[rest[0]] === undefined) {
      plant(last, rest, value, field);
      return list;
    }
    list.push(plant(undefined, rest, value, field));
    return list;
  }
  const branch = node ?? newBranch();
  if (!isBranch(branch)) throw clash(field);
  branch[key] = plant(branch[key], rest, value, field);
  return branch;
}

/** Has no prototype, so that names such as `constructor` are ordinary fields. */
function newBranch(): Branch {
  return Object.create(null) as Branch;
}

function isBranch(node: Node | undefined): node is Branch {
  return typeof node === 'object' && node !== null && !Array.isArray(node);
}

function clash({ flag, name }: ApiField): WrongUsage {
  return new WrongUsage(`${flag} ${quote(name)} is set twice; give it once`);
}
