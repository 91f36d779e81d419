import { InvalidValue } from '../core/errors.ts';
import { InvalidRequest } from './errors.ts';

type Read = <Value>(parse: () => Value) => Value | undefined;
type Parsed<Fields> = { [Name in keyof Fields]: Exclude<Fields[Name], undefined> };

/**
 * Reads several fields of a request, each by a parser that throws InvalidValue, and refuses the request once, with all
 * that was wrong with it. A parser gives no undefined: it stands for a field that broke its rules.
 */
export function readFields<Fields extends object>(fields: (read: Read) => Fields): Parsed<Fields> {
  const broken: Record<string, string[]> = {};
  const parsed = fields((parse) => {
    try {
      return parse();
    } catch (error) {
      if (!(error instanceof InvalidValue)) throw error;
      broken[error.field] = [...(broken[error.field] ?? []), error.message];
      return undefined;
    }
  });
  if (Object.keys(broken).length > 0) throw new InvalidRequest(broken);
  return parsed as Parsed<Fields>;
}
