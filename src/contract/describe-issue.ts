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
