import { join } from 'node:path';
import * as z from 'zod';
import { UnreadableFile } from '../core/errors.ts';
import type { ServiceAddress } from '../core/model.ts';
import { Secret } from '../core/secret.ts';
import { readText, removeFile, replaceFile } from './atomic-file.ts';
import { makeFolder } from './folder.ts';

/** An administrator's login at one control plane. */
export interface Login {
  readonly service: ServiceAddress;
  readonly token: Secret;
}

const schema = z.object({
  version: z.literal(1),
  service: z.object({ url: z.string(), insecureHttp: z.boolean() }),
  token: z
    .string()
    .min(1)
    .transform((text) => new Secret(text)),
});

/** The stored login, or null when there is none. */
export async function readLogin(folder: string): Promise<Login | null> {
  const text = await readText(pathIn(folder));
  if (text === null) return null;
  try {
    const { service, token } = schema.parse(JSON.parse(text));
    return { service, token };
  } catch (error) {
    throw new UnreadableFile(pathIn(folder), 'is damaged', 'run "cpn login" again', error);
  }
}

export async function writeLogin(folder: string, { service, token }: Login): Promise<void> {
  await makeFolder(folder);
  await replaceFile(pathIn(folder), JSON.stringify({ version: 1, service, token: token.reveal() }));
}

export async function removeLogin(folder: string): Promise<void> {
  await removeFile(pathIn(folder));
}

function pathIn(folder: string): string {
  return join(folder, 'login.json');
}
