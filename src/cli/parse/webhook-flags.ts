import { WrongUsage } from '../../core/errors/index.ts';
import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { readPrivateFile, readSecret } from '../input/secrets.ts';

export const webhookFlags: Flags = {
  webhook: { kind: 'text', value: 'URL', summary: 'send events here, or file:PATH of a file that holds the URL' },
  'webhook-secret-file': {
    kind: 'text',
    value: 'PATH',
    summary:
      'file that holds only the secrets that sign them, one per line, as whsec_ and base64; must not be readable by others',
  },
  'webhook-events': {
    kind: 'list',
    value: 'TYPE[,TYPE]',
    summary: 'types of events to send, also audit.* for the audit; default: all events',
  },
  'webhook-allow': {
    kind: 'list',
    value: 'CIDR[,CIDR]',
    summary: 'addresses of the receiver that are not public, or that it serves plain http at',
  },
};

/** Reads {@link webhookFlags}. Null without a webhook. */
export async function readWebhook(input: Input) {
  const [url, file] = [input.text('webhook'), input.text('webhook-secret-file')];
  const events = readList(input, 'webhook-events');
  const allow = readList(input, 'webhook-allow');
  if (url === undefined && file === undefined) {
    if (events.length === 0 && allow.length === 0) return null;
    throw new WrongUsage('--webhook-events and --webhook-allow are for a webhook; give --webhook too');
  }
  if (url === undefined || file === undefined) {
    throw new WrongUsage('--webhook and --webhook-secret-file go together; give both, or neither');
  }
  return {
    url: await readSecret(url, "the webhook's URL"),
    secrets: await readPrivateFile(file, "the webhook's secret"),
    events,
    allow,
  };
}

function readList(input: Input, flag: string): string[] {
  const items = input.list(flag).flatMap((item) => item.split(','));
  return [...new Set(items.map((item) => item.trim()))];
}
