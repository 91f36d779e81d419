import { open } from 'node:fs/promises';
import { quote, WrongUsage } from '../../core/errors/index.ts';
import type { Flags } from './flags.ts';
import { type Environment, variableOf } from './input.ts';

/** The path at which an image, cloud-init or Ansible installs the file. */
export const usualJoinFile = '/etc/cpn/join.conf';

/** The variable of the enrolment key, which is an argument and no flag. */
export const keyVariable = 'CPN_ENROLLMENT_KEY';

/** Bytes. Beyond all flags of a join. */
const mostBytes = 64 * 1024;

/** Reads the file of a join. See {@link parseJoinFile}. @throws WrongUsage */
export async function readJoinFile(path: string, flags: Flags): Promise<Environment> {
  const text = await readShort(path).catch(({ code }: NodeJS.ErrnoException) => {
    throw new WrongUsage(`${path} cannot be read (${code}); check the path and its permissions`);
  });
  return parseJoinFile(text, path, flags);
}

/**
 * Each line is a flag of `join` without its dashes, `=` and its value, as in `type = connector`. A
 * repeatable flag may have several lines. `key` is the enrolment key, as `file:PATH`. `#` starts a
 * comment line.
 * @throws WrongUsage with the line number, and never with a value
 */
export function parseJoinFile(text: string, path: string, flags: Flags): Environment {
  const variables: Record<string, string> = {};
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    const wrong = (problem: string) => new WrongUsage(`${path}, line ${index + 1}: ${problem}`);
    const [, name = '', value = ''] = /^\s*([a-z-]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    const flag = Object.hasOwn(flags, name) ? flags[name] : undefined;
    if (name === '') throw wrong('is not NAME = VALUE, such as type = connector');
    if (flag === undefined && name !== 'key') {
      throw wrong(`there is no ${quote(name)}; "cpn join --help" lists the flags; write them without dashes`);
    }
    if (value === '') throw wrong(`${name} has no value; give it one, or remove the line`);
    if (name === 'key' && !value.startsWith('file:')) {
      throw wrong('this file must not contain the key itself; write key = file:PATH');
    }
    const variable = name === 'key' ? keyVariable : variableOf(name);
    const known = variables[variable];
    if (known !== undefined && flag?.kind !== 'list') throw wrong(`${name} is given twice; keep one of them`);
    variables[variable] = known === undefined ? value : `${known},${value}`;
  }
  return variables;
}

async function readShort(path: string): Promise<string> {
  const file = await open(path);
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(mostBytes + 1), 0, mostBytes + 1, 0);
    if (bytesRead > mostBytes) throw Object.assign(new Error(), { code: 'EFBIG' });
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}
