import { STATUS_CODES } from 'node:http';
import type { RawReply } from '../../api/raw-service.ts';
import { printable } from '../../core/errors/index.ts';

export function headToText({ status, headers }: Pick<RawReply, 'status' | 'headers'>): string {
  const lines = Object.entries(headers).flatMap(([name, value]) => [value].flat().map((each) => `${name}: ${each}`));
  return `${[`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd(), ...lines].map(printable).join('\n')}\n\n`;
}

/** Unchanged bytes. For a terminal, formats JSON and sanitizes text; null for binary data. */
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
