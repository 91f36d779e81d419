import type * as z from 'zod';
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
  const field = path.map((key) => (typeof key === 'number' ? `[${key}]` : String(key))).join('');
  const value = path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key], request);
  return new InvalidValue(field, visible(field, value), issue ? ruleOf(issue) : 'is not what the contract allows');
}

function visible(field: string, value: unknown): unknown {
  if (/(^|_)password$/.test(field)) return undefined;
  if (field === 'enrollment_token') return `${String(value).slice(0, 4)}...`;
  // InvalidValue hides undefined; a missing value should be visible.
  return value ?? null;
}

/** The contract's rule if it has one, else ours for zod's. */
function ruleOf(issue: z.core.$ZodIssue): string {
  if (issue.message.startsWith('must ')) return issue.message;
  switch (issue.code) {
    case 'too_small':
      return issue.origin === 'string' ? 'must not be empty' : `must be at least ${issue.minimum}`;
    case 'too_big':
      return `must be at most ${issue.maximum}`;
    case 'invalid_value':
      return `must be ${issue.values.join(' or ')}`;
    case 'invalid_format':
      return `is not in the form of ${issue.format === 'email' ? 'an email address' : issue.format}`;
    case 'invalid_type':
      return `must be ${issue.expected === 'int' ? 'a whole number' : `of type ${issue.expected}`}`;
    default:
      return 'is not what the contract allows';
  }
}
