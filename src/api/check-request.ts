import type * as z from 'zod';
import { describeIssue } from '../contract/describe-issue.ts';
import { InvalidValue } from '../core/errors/index.ts';

/** Checks a request by the contract's schema. @throws InvalidValue for the first broken rule */
export function checkRequest<Schema extends z.ZodType>(schema: Schema, request: z.input<Schema>): z.output<Schema> {
  const { data, error } = schema.safeParse(request);
  if (error) throw invalidValue(error, request);
  return data;
}

/** The first issue of zod: field, value and rule. Of a secret, only its safe part. */
function invalidValue(error: z.ZodError, request: unknown): InvalidValue {
  const [issue] = error.issues;
  const path = issue?.path ?? [];
  const field = path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .slice(1);
  const value = path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key], request);
  return new InvalidValue(
    field,
    visible(field, value),
    issue ? describeIssue(issue) : 'is not what the contract allows',
  );
}

function visible(field: string, value: unknown): unknown {
  if (/(^|_)password$/.test(field)) return undefined;
  if (field === 'enrollment_token') return `${String(value).slice(0, 4)}...`;
  // InvalidValue hides undefined; a missing value should be visible.
  return value ?? null;
}
