import type { FastifyRequest, FastifySchemaCompiler } from 'fastify';
import * as z from 'zod';
import { checkAll } from '../domain/field-rules.ts';
import { InvalidRequest, NotFound } from '../errors.ts';

/**
 * An impossible value in a path is a 404, everything else a 422. A null in an optional field of the
 * body counts as absent, unless the field permits null.
 */
export const validateRequest: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  return (data) => {
    const given = httpPart === 'body' ? leaveOutNulls(schema, data) : data;
    const result = z.safeParse(schema, given ?? undefined, { error: describeRule });
    if (result.success) return { value: result.data };
    if (httpPart === 'params') return { error: new NotFound(String(result.error.issues[0]?.path[0])) };
    const rest = httpPart === 'body' ? pickValid(schema, given) : null;
    return { error: new InvalidRequest(brokenRules(result.error.issues), rest) };
  };
};

function leaveOutNulls(schema: z.ZodType, data: unknown): unknown {
  if (!(schema instanceof z.ZodObject) || !isObject(data)) return data;
  return Object.fromEntries(
    Object.entries(data).filter(([name, value]) => value !== null || !isOptional(findField(schema, name))),
  );
}

/** A body may have any name, such as that of a property of every object. */
function findField({ shape }: z.ZodObject, name: string): z.ZodType | undefined {
  return Object.hasOwn(shape, name) ? (shape[name] as z.ZodType) : undefined;
}

/** True for an optional field that does not permit null. */
function isOptional(field: z.ZodType | undefined): boolean {
  return field?.safeParse(undefined).success === true && !field.safeParse(null).success;
}

/** The fields that follow the schema; null if the body has no fields. */
function pickValid(schema: z.ZodType, data: unknown): object | null {
  if (!(schema instanceof z.ZodObject) || !isObject(data)) return null;
  const fields = Object.entries<z.ZodType>(schema.shape).flatMap(([name, field]) => {
    const { success, data: value } = field.safeParse(data[name]);
    return success && value !== undefined ? [[name, value] as const] : [];
  });
  return Object.fromEntries(fields);
}

function isObject(data: unknown): data is Record<string, unknown> {
  return typeof data === 'object' && data !== null && !Array.isArray(data);
}

function brokenRules(issues: readonly z.core.$ZodIssue[]): Record<string, string[]> {
  const fields: Record<string, string[]> = {};
  for (const { path, message } of issues) {
    const [field = 'body', ...rest] = path.map(String);
    const rule = rest.length > 0 ? `item ${rest.join('.')} ${message}` : message;
    fields[field] = [...(fields[field] ?? []), rule];
  }
  return fields;
}

/** The broken rule, to be read after the name of its field. A schema's own message has priority. */
function describeRule(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'is required' : `must be ${withArticle(issue.expected)}`;
    case 'invalid_value':
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}`;
    case 'invalid_format':
      return issue.format === 'email' ? 'must be an e-mail address' : `must be a valid ${issue.format}`;
    case 'too_small':
      return issue.origin === 'string' ? 'must not be empty' : `must be at least ${issue.minimum}`;
    case 'too_big':
      return issue.origin === 'string'
        ? `must be at most ${issue.maximum} characters`
        : `must be at most ${issue.maximum}`;
    default:
      return undefined;
  }
}

function withArticle(type: string): string {
  const name = type === 'int' ? 'integer' : type;
  return `${/^[aeio]/.test(name) ? 'an' : 'a'} ${name}`;
}

/** Adds to the refusal of a body the rules that the valid fields break in the route's own check. */
export async function nameAllFields(error: unknown, request: FastifyRequest): Promise<unknown> {
  const { checkFields } = request.routeOptions.config;
  if (!(error instanceof InvalidRequest) || error.validFields === null || !checkFields) return error;
  const refuse = () => {
    throw error;
  };
  const { validFields } = error;
  return checkAll(refuse, () => checkFields(validFields, request)).catch((all) =>
    all instanceof InvalidRequest ? all : error,
  );
}
