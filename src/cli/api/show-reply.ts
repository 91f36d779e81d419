import { STATUS_CODES } from 'node:http';
import type { RawReply } from '../../api/raw-service.ts';
import { printable } from '../../core/errors/index.ts';

/** The status line and the headers, in front of a body. */
export function headToText({ status, headers }: Pick<RawReply, 'status' | 'headers'>): string {
  const lines = Object.entries(headers).flatMap(([name, value]) => [value].flat().map((each) => `${name}: ${each}`));
  return `${[`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd(), ...lines].map(printable).join('\n')}\n\n`;
}

/**
 * The stdout of a reply: its unchanged bytes, after the status and headers with `include`. On a
 * terminal, formats JSON and sanitizes text, and returns null for binary data.
 */
export function replyToBytes(
  reply: RawReply,
  { include, terminal }: { readonly include: boolean; readonly terminal: boolean },
): Uint8Array | null {
  const head = include ? headToText(reply) : '';
  if (!terminal) return Buffer.concat([Buffer.from(head), reply.bytes]);
  const text = layOut(reply);
  if (text === null) return null;
  return Buffer.from(
    `${head}${text.split('\n').map(printable).join('\n')}${text === '' || text.endsWith('\n') ? '' : '\n'}`,
  );
}

/** The text for a terminal. Null for binary data. */
function layOut({ json, bytes }: RawReply): string | null {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
  if (text.includes('\0')) return null;
  if (!json) return text.replaceAll('\t', '  ').replaceAll('\r\n', '\n');
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
