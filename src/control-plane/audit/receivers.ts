import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { type AuditEntry, matchesAction } from '../../contract/audit.ts';
import type { Send } from '../health/send-webhook.ts';
import type { Webhook } from '../health/webhook-settings.ts';
import type { AuditMessage, AuditReceiver, Sent } from './send-audit.ts';

/** Appends JSON lines to a file, which log rotation may move. They survive a power cut. */
export function createFileReceiver(path: string): AuditReceiver {
  return {
    ...{ name: `file:${path}`, label: path, accepts: () => true },
    async send(messages) {
      try {
        await append(path, messages);
        return { count: messages.length, failure: null };
      } catch (error) {
        const { code = 'unknown error' } = error as NodeJS.ErrnoException;
        return {
          count: 0,
          failure: { reason: `${path} cannot be written (${code})`, retryAfterMs: 0, isRefusal: false },
        };
      }
    },
  };
}

async function append(path: string, messages: readonly AuditMessage[]): Promise<void> {
  const file = await open(path, 'a+', 0o600);
  try {
    const lines = messages.map(({ body }) => `${body}\n`).join('');
    await file.appendFile((await endsInLine(file)) ? lines : `\n${lines}`);
    await file.datasync();
  } finally {
    await file.close();
  }
}

/** False after a write that a full disk cut off. */
async function endsInLine(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat();
  if (size === 0) return true;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] === 0x0a;
}

const passing = { retryAfterMs: 0, isRefusal: false } as const;

/** Writes JSON lines to standard output. Fails if standard output is closed. */
export function createOutputReceiver(output: Pick<NodeJS.WriteStream, 'write'> = process.stdout): AuditReceiver {
  return {
    ...{ name: 'output', label: 'standard output', accepts: () => true },
    send: (messages, signal) =>
      new Promise<Sent>((resolve) => {
        const stop = () => resolve({ count: 0, failure: { reason: 'the control plane stops', ...passing } });
        signal.addEventListener('abort', stop, { once: true });
        output.write(messages.map(({ body }) => `${body}\n`).join(''), (error) => {
          signal.removeEventListener('abort', stop);
          const failure = error && { reason: `standard output is closed (${error.message})`, ...passing };
          resolve(failure ? { count: 0, failure } : { count: messages.length, failure: null });
        });
      }),
  };
}

/** Sends each entry as a message of the webhook, one after the other. */
export function createWebhookReceiver(webhook: Webhook, send: Send, now: () => Date): AuditReceiver {
  const url = webhook.url.reveal();
  // The path may grant access.
  const name = `webhook:${createHash('sha256').update(url).digest('base64url').slice(0, 16)}`;
  return {
    ...{ name, label: `webhook ${new URL(url).host}` },
    accepts: (entry: AuditEntry) => webhook.actions.some((each) => matchesAction(entry.action, each)),
    async send(messages, signal) {
      for (const [count, message] of messages.entries()) {
        const outcome = await send(message, now(), signal);
        if (outcome !== null) return { count, failure: outcome };
      }
      return { count: messages.length, failure: null };
    },
  };
}
