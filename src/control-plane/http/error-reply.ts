import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Refusal } from '../../contract/reply.ts';
import {
  Conflict,
  DeviceCodeRefused,
  Disconnected,
  Forbidden,
  InvalidRequest,
  IssuerRefused,
  MethodNotAllowed,
  NetworkDeleted,
  NotFound,
  OutcomeUnknown,
  PreconditionFailed,
  TooManyRequests,
  Unauthenticated,
  Unavailable,
  UnsupportedEncoding,
} from '../errors.ts';

interface ErrorReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Refusal;
}

/** RFC 9110, 15.5.11: a cache may keep a 410 otherwise, and the network may come back. */
const noStore = { 'cache-control': 'no-store' };

/** Translates an error to a reply. The reply to an unexpected error reveals nothing. */
function toErrorReply(error: unknown, bodyLimit?: number): ErrorReply {
  if (error instanceof InvalidRequest) return refusal(422, error.message, {}, error.fields);
  if (error instanceof Unauthenticated) return refusal(401, error.message, { 'www-authenticate': 'Bearer' });
  if (error instanceof Forbidden) return refusal(403, error.message);
  if (error instanceof NotFound) return refusal(404, error.message);
  if (error instanceof MethodNotAllowed) return refusal(405, error.message, { allow: error.allowed.join(', ') });
  if (error instanceof NetworkDeleted) {
    return { status: 410, headers: noStore, body: { message: error.message, deleted: error.deleted } };
  }
  if (error instanceof DeviceCodeRefused) {
    return { status: 400, headers: {}, body: { message: error.message, error: error.code } };
  }
  if (error instanceof Conflict) return refusal(409, error.message);
  if (error instanceof PreconditionFailed) return refusal(412, error.message);
  if (error instanceof UnsupportedEncoding) return refusal(415, error.message, { 'accept-encoding': 'identity' });
  if (error instanceof TooManyRequests) {
    return refusal(429, error.message, { 'retry-after': String(error.retryAfterSeconds) });
  }
  if (error instanceof Unavailable) {
    return refusal(503, error.message, { 'retry-after': String(error.retryAfterSeconds) });
  }
  if (error instanceof IssuerRefused) return refusal(502, error.message);
  // For log and metrics.
  if (error instanceof Disconnected) return refusal(499, error.message);
  // Not a 503: a 503 means that nothing was done, so a client may repeat the request.
  if (error instanceof OutcomeUnknown) return refusal(504, error.message);
  return fromFastify(error, bodyLimit) ?? refusal(500, 'the control plane failed; its log says why');
}

/** Sends the reply to an error, and logs failures of the control plane. */
export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, headers, body } = toErrorReply(error, request.routeOptions?.bodyLimit);
  if (error instanceof Unavailable) {
    const level = request.routeOptions?.config?.isHealthCheck ? 'debug' : 'warn';
    request.log[level]({ err: error.cause, ...error.facts }, 'request put off');
  } else if (status >= 500) request.log.error({ err: error }, 'request failed');
  return reply.code(status).headers(headers).send(body);
}

/** Fastify's own refusals: of an invalid URL, and of an unreadable body. */
function fromFastify(error: unknown, bodyLimit = 64 * 1024): ErrorReply | null {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return refusal(413, `the body of the request is larger than ${bodyLimit / 1024} KiB`);
  }
  if (code === 'FST_ERR_BAD_URL' || code === 'FST_ERR_MAX_PARAM_LENGTH') return refusal(404, 'there is no such path');
  // Fastify sets a status on the errors of a request. Database errors have none.
  if (code === 'ECONNRESET' && 'statusCode' in (error as Error))
    return refusal(400, 'the request ended before the end of its body');
  const problem = unreadableBody[code];
  return problem === undefined ? null : refusal(422, `the body of the request ${problem}`, {}, { body: [problem] });
}

const unreadableBody: Readonly<Record<string, string>> = {
  FST_ERR_CTP_INVALID_JSON_BODY: 'is not valid JSON',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'must be JSON, with Content-Type: application/json',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'has a length other than its Content-Length',
};

function refusal(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
  errors?: InvalidRequest['fields'],
): ErrorReply {
  const fields = errors && Object.fromEntries(Object.entries(errors).map(([name, rules]) => [name, [...rules]]));
  return { status, headers, body: { message, ...(fields && { errors: fields }) } };
}
