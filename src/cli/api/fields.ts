import { quote, WrongUsage } from '../../core/errors/index.ts';

/** A field of a request as it was given: `routes[]=192.168.50.0/24` has the keys `routes` and an empty one. */
export interface ApiField {
  readonly flag: string;
  /** Before the `=`, as it was written. */
  readonly name: string;
  readonly keys: readonly string[];
  /** After the `=`; null where there is none, which `routes[]` alone may lack: it stands for an empty list. */
  readonly text: string | null;
}

type Node = string | number | boolean | null | Node[] | Branch;
type Branch = { [key: string]: Node };

/** Reads `k=v`, `a[b]=c` or `a[]=v`, as `gh api` does. */
export function parseField(given: string, flag: string): ApiField {
  const [, name = '', head, rest = '', value] = /^(([^[\]=]+)((?:\[[^[\]=]*\])*))(?:=(.*))?$/s.exec(given) ?? [];
  if (head === undefined || (value === undefined && !rest.endsWith('[]'))) {
    throw new WrongUsage(`${flag} ${quote(given.replace(/=.*$/s, '=...'))} is not a field; write NAME=VALUE`);
  }
  const keys = [head, ...[...rest.matchAll(/\[([^\]]*)\]/g)].map(([, key = '']) => key)];
  return { flag, name, keys, text: value ?? null };
}

/** What `--field` makes of a text: true, false, null or a whole number where it is one, else itself. */
export function typed(text: string): string | number | boolean | null {
  if (text === 'true' || text === 'false') return text === 'true';
  if (text === 'null') return null;
  // Not 007, nor what a number would round: these are codes.
  const isWhole = /^(0|-?[1-9][0-9]*)$/.test(text) && Number.isSafeInteger(Number(text));
  return isWhole ? Number(text) : text;
}

/** The JSON object that fields with their values make together. A field that is set twice is a WrongUsage. */
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
    // `a[][x]=1 a[][y]=2 a[][x]=3` are two objects: the second begins where a key comes again.
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

/** Without a prototype, whose names are fields like others here. */
function newBranch(): Branch {
  return Object.create(null) as Branch;
}

function isBranch(node: Node | undefined): node is Branch {
  return typeof node === 'object' && node !== null && !Array.isArray(node);
}

function clash({ flag, name }: ApiField): WrongUsage {
  return new WrongUsage(`${flag} ${quote(name)} is set twice; give it once`);
}
