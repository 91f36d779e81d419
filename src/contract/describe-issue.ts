import type * as z from 'zod';

/** The rule that a value breaks, as the end of a sentence. */
export function describeIssue(issue: z.core.$ZodIssue): string {
  if (issue.message.startsWith('must ')) return issue.message;
  switch (issue.code) {
    case 'too_small':
      return issue.origin === 'string' ? 'must not be empty' : `must be at least ${issue.minimum}`;
    case 'too_big':
      return issue.origin === 'array'
        ? `must have at most ${issue.maximum} entries`
        : `must be at most ${issue.maximum}`;
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

/** Like {@link describeIssue} for a value that a person wrote, with what to write instead. */
export function describeMistake(
  issue: z.core.$ZodIssue,
  value: unknown,
): { readonly rule: string; readonly remedy?: string } {
  const expected = issue.code === 'invalid_type' ? issue.expected : null;
  if (value === undefined || value === null) {
    const words = issue.code === 'invalid_value' ? `write ${issue.values.join(' or ')}` : 'add it';
    return { rule: 'is missing', remedy: expected === 'array' ? 'write a list, or [] for none' : words };
  }
  if (expected === 'array') {
    const remedy = typeof value === 'object' ? 'write each entry on a line with "- "' : `write a list: [${value}]`;
    return { rule: 'is no list', remedy };
  }
  if (expected === 'object') return { rule: 'has no fields', remedy: 'write each as "field: value"' };
  if (expected === 'boolean') return { rule: 'is neither true nor false' };
  if (expected === 'string' && typeof value !== 'object')
    return { rule: 'is no text', remedy: `write it in quotes: "${value}"` };
  return { rule: describeIssue(issue) };
}
