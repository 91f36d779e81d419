import { InvalidValue } from '../../core/errors/index.ts';
import { InvalidRequest } from '../errors.ts';

/** Parses one field of a request; undefined if it breaks a rule. */
export type ReadField = <Value>(parse: () => Value) => Value | undefined;
type Parsed<Fields> = { [Name in keyof Fields]: Exclude<Fields[Name], undefined> };

/**
 * Throws one InvalidRequest with the InvalidValue errors of all parsers. A parser must not return
 * undefined, which stands for a broken field.
 */
export function readFields<Fields extends object>(fields: (read: ReadField) => Fields): Parsed<Fields> {
  const broken: Record<string, string[]> = {};
  const parsed = fields((parse) => {
    try {
      return parse();
    } catch (error) {
      if (!(error instanceof InvalidValue)) throw error;
      // The message begins with the field name, which the reply has next to the rule.
      const rule = error.message.slice(error.field.length + 1);
      broken[error.field] = [...(broken[error.field] ?? []), rule];
      return undefined;
    }
  });
  if (Object.keys(broken).length > 0) throw new InvalidRequest(broken);
  return parsed as Parsed<Fields>;
}

/** Returns the results of all checks, or throws one InvalidRequest with all broken rules. */
export async function checkAll<Results extends readonly unknown[]>(
  ...checks: { readonly [At in keyof Results]: () => Results[At] | Promise<Results[At]> }
): Promise<Results> {
  const broken: Record<string, readonly string[]> = {};
  const results: unknown[] = [];
  for (const check of checks) {
    try {
      results.push(await check());
    } catch (error) {
      if (!(error instanceof InvalidRequest)) throw error;
      for (const [field, rules] of Object.entries(error.fields)) broken[field] = [...(broken[field] ?? []), ...rules];
    }
  }
  if (Object.keys(broken).length > 0) throw new InvalidRequest(broken);
  return results as unknown as Results;
}
