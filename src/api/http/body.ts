import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { BadReply } from '../../core/errors/index.ts';
import { AttemptFailed } from './attempt-failed.ts';
import type { ReplyHead, ReplyLimits } from './connection.ts';
import { hasPageType, intercepted, isPage } from './interception.ts';
import { sanitizeForMessage } from './sanitize-for-message.ts';

const inflate = promisify(gunzip);
const wrongService = 'check that --api names the control plane itself';

/**
 * Reads a body that must be JSON, and never holds more of it than the cap. Anything else is a BadReply that shows nothing of
 * the body, for that may be a token. A body that breaks off is an AttemptFailed.
 */
export async function readJson(response: ReplyHead, reading: ReplyLimits): Promise<unknown> {
  return parseJson(response, await readWhole(response, reading), reading);
}

/** Like {@link readJson}, and null for a body that is no JSON, or too long. */
export async function readIfJson(response: ReplyHead, reading: ReplyLimits): Promise<unknown> {
  try {
    return await readJson(response, reading);
  } catch (error) {
    if (error instanceof BadReply) return null;
    throw error;
  }
}

/** Reads a body, inflated, and never holds more of it than the cap. One that breaks off is an AttemptFailed. */
export async function readWhole(response: ReplyHead, reading: ReplyLimits): Promise<Buffer> {
  return inflated(response, await readBytes(response, reading), reading);
}

/** Parses the bytes of a body, which must be JSON; otherwise like {@link readJson}. */
export function parseJson(response: ReplyHead, bytes: Buffer, reading: ReplyLimits): unknown {
  const type = mediaType(response);
  if (!isJson(type)) {
    if (isPage(response, bytes)) throw intercepted('it answered with HTML');
    const found = type === '' ? 'something of no known type' : sanitizeForMessage(type, reading.secrets, 40);
    throw new BadReply(reading.url, `is not JSON but ${found}`, wrongService);
  }
  try {
    return parseExactly(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    // The SyntaxError quotes what it read: it is no cause to pass on.
    throw new BadReply(reading.url, 'is declared as JSON and is not', wrongService);
  }
}

/**
 * Accepts a 2xx in which nothing has to come: without a content type, with JSON, or without a body. Text and HTML are no answer of a
 * service that speaks JSON, also where they are empty: what was asked for is not done.
 */
export async function readNothing(response: ReplyHead, reading: ReplyLimits): Promise<void> {
  const type = mediaType(response);
  if (response.statusCode === 204 || type === '' || isJson(type)) return;
  const bytes = await readWhole(response, reading);
  if (bytes.length > 0 || hasPageType(response) || type === 'text/plain') parseJson(response, bytes, reading);
}

/** Reads JSON that older services leave out: null without it. Anything else is refused as by {@link readNothing}. */
export async function readOptional(response: ReplyHead, reading: ReplyLimits): Promise<unknown> {
  if (isJson(mediaType(response))) return readIfJson(response, reading);
  await readNothing(response, reading);
  discard(response);
  return null;
}

/** Without its parameters; empty where a reply has none. */
function mediaType(response: ReplyHead): string {
  return header(response, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** A whole number that JavaScript would round stays as it was written: it may be an id, which is one of its digits off another. */
function parseExactly(text: string): unknown {
  if (!/[\s:[,]-?\d{16}/.test(text)) return JSON.parse(text);
  // Slower, and rare. TypeScript does not know the third argument yet (ECMA-262, JSON.parse).
  const keep = (_: string, value: unknown, { source }: { source?: string } = {}) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? '') ? source : value;
  return JSON.parse(text, keep as (key: string, value: unknown) => unknown);
}

/** True of `application/json` and what is built on it (RFC 6839), without parameters. */
export function isJson(type: string): boolean {
  return /^application\/(?:[\w.+-]+\+)?json$/.test(type);
}

/** A header that came once; null when it didn't come, or more than once. */
export function header(response: ReplyHead, name: string): string | null {
  const value = response.headers[name];
  return typeof value === 'string' ? value : null;
}

/** Leaves the rest of a body unread; its connection ends with it. */
export function discard(response: ReplyHead): void {
  response.body.on('error', () => {}).destroy();
}

async function readBytes(response: ReplyHead, reading: ReplyLimits): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of response.body) {
      length += chunk.length;
      if (length > reading.maxBytes) throw tooLong(reading);
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof BadReply ? error : AttemptFailed.from(error, false);
  }
  return Buffer.concat(chunks, length);
}

async function inflated(response: ReplyHead, bytes: Buffer, reading: ReplyLimits): Promise<Buffer> {
  const coding = response.headers['content-encoding'];
  if (coding === undefined || coding === 'identity') return bytes;
  if (coding !== 'gzip') {
    throw new BadReply(reading.url, 'is encoded otherwise than with gzip, which alone was asked for', wrongService);
  }
  try {
    return await inflate(bytes, { maxOutputLength: reading.maxBytes });
  } catch (error) {
    if (error instanceof RangeError) throw tooLong(reading);
    throw new BadReply(reading.url, 'says that it is gzip and is not', wrongService);
  }
}

function tooLong({ url, maxBytes }: ReplyLimits): BadReply {
  return new BadReply(url, `is longer than ${maxBytes} bytes`, wrongService);
}
