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
 * Reads a JSON body up to the size limit. Anything else is a BadReply, which never shows the body,
 * because it may contain a token. A truncated body is an AttemptFailed.
 */
export async function readJson(response: ReplyHead, reading: ReplyLimits): Promise<unknown> {
  return parseJson(response, await readWhole(response, reading), reading);
}

/** Like {@link readJson}, but returns null for a body that is not JSON or too long. */
export async function readIfJson(response: ReplyHead, reading: ReplyLimits): Promise<unknown> {
  try {
    return await readJson(response, reading);
  } catch (error) {
    if (error instanceof BadReply) return null;
    throw error;
  }
}

/** Reads and inflates a body up to the size limit. A truncated body is an AttemptFailed. */
export async function readWhole(response: ReplyHead, reading: ReplyLimits): Promise<Buffer> {
  return inflated(response, await readBytes(response, reading), reading);
}

/** Parses the bytes of a JSON body. Errors are as in {@link readJson}. */
export function parseJson(response: ReplyHead, bytes: Buffer, reading: ReplyLimits): unknown {
  const type = mediaType(response);
  if (!isJson(type)) {
    if (isPage(response, bytes)) throw intercepted('it answered with HTML');
    const found = type === '' ? 'a reply without a type' : sanitizeForMessage(type, reading.secrets, 40);
    throw new BadReply(reading.url, `is not JSON but ${found}`, wrongService);
  }
  try {
    return parseExactly(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    // The SyntaxError quotes its input, so it must not become a cause.
    throw new BadReply(reading.url, 'is declared as JSON and is not', wrongService);
  }
}

/**
 * Accepts a 2xx without expected content: without content type, with JSON, or without a body. Even
 * empty text or HTML is no reply of a JSON service, so the request was not executed.
 */
export async function readNothing(response: ReplyHead, reading: ReplyLimits): Promise<void> {
  const type = mediaType(response);
  if (response.statusCode === 204 || type === '' || isJson(type)) return;
  const bytes = await readWhole(response, reading);
  if (bytes.length > 0 || hasPageType(response) || type === 'text/plain') parseJson(response, bytes, reading);
}

/** Reads JSON that older services omit; null without it. Otherwise like {@link readNothing}. */
export async function readOptional(response: ReplyHead, reading: ReplyLimits): Promise<unknown> {
  if (isJson(mediaType(response))) return readIfJson(response, reading);
  await readNothing(response, reading);
  discard(response);
  return null;
}

/** Returns the media type without parameters; empty without a Content-Type. */
function mediaType(response: ReplyHead): string {
  return header(response, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** Parses JSON. Integers that JavaScript would round stay text: a rounded id is another id. */
function parseExactly(text: string): unknown {
  if (!/[\s:[,]-?\d{16}/.test(text)) return JSON.parse(text);
  // Slower, and rarely needed. TypeScript lacks the third argument (ECMA-262, JSON.parse).
  const keep = (_: string, value: unknown, { source }: { source?: string } = {}) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? '') ? source : value;
  return JSON.parse(text, keep as (key: string, value: unknown) => unknown);
}

/** True for `application/json` and types based on it (RFC 6839), without parameters. */
export function isJson(type: string): boolean {
  return /^application\/(?:[\w.+-]+\+)?json$/.test(type);
}

/** Returns a header that occurs exactly once, else null. */
export function header(response: ReplyHead, name: string): string | null {
  const value = response.headers[name];
  return typeof value === 'string' ? value : null;
}

/** Discards the rest of a body. Its connection ends with it. */
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
    throw new BadReply(reading.url, 'has an encoding other than gzip, the only one requested', wrongService);
  }
  try {
    return await inflate(bytes, { maxOutputLength: reading.maxBytes });
  } catch (error) {
    if (error instanceof RangeError) throw tooLong(reading);
    throw new BadReply(reading.url, 'is declared as gzip and is not', wrongService);
  }
}

function tooLong({ url, maxBytes }: ReplyLimits): BadReply {
  return new BadReply(url, `is longer than ${maxBytes} bytes`, wrongService);
}
