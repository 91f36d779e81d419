import { join } from 'node:path';
import * as v from 'valibot';
import type { Secret } from '../core/crypto/secret.ts';
import { UnreadableFile } from '../core/errors/index.ts';
import type { ServiceAddress } from '../core/net/service-address.ts';
import { readText, removeFile, replaceFile } from './files/atomic-file.ts';
import { expectedError } from './files/disk.ts';
import { formatServiceAddress, parseAs, secret, serviceAddress } from './files/file-schema.ts';
import { closeFile, type OnExposure, refuseForeign, secureFolder } from './files/file-trust.ts';
import { makeFolder } from './files/folder.ts';

/** An administrator's login at one control plane. */
export interface Login {
  readonly service: ServiceAddress;
  readonly token: Secret;
  /** True for a session token, false for a personal token. */
  readonly session?: boolean;
}

const schema = v.object({
  version: v.literal(1),
  service: serviceAddress,
  token: secret,
  session: v.optional(v.boolean(), false),
});

/** Reads the stored login, or null. Closes the file if other users could read it. */
export async function readLogin(folder: string, onExposure: OnExposure = () => {}): Promise<Login | null> {
  const path = pathIn(folder);
  const text = await readText(path, (stats) => refuseForeign(path, stats));
  if (text === null) return null;
  await closeFile({ path, isOwn: true }, onExposure).catch(expectedError);
  try {
    const { version: _, ...login } = parseAs(schema, JSON.parse(text));
    return login;
  } catch (error) {
    throw new UnreadableFile(path, 'is damaged', 'run "cpn login" again', error);
  }
}

export async function writeLogin(
  folder: string,
  { service, token, session }: Login,
  onExposure: OnExposure = () => {},
): Promise<void> {
  await makeFolder(folder);
  await secureFolder(folder, false, onExposure);
  await replaceFile(
    pathIn(folder),
    JSON.stringify({ version: 1, service: formatServiceAddress(service), token: token.reveal(), session }),
  );
}

export async function removeLogin(folder: string): Promise<void> {
  await removeFile(pathIn(folder));
}

function pathIn(folder: string): string {
  return join(folder, 'login.json');
}
