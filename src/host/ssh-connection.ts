import type { SshClient } from '../core/host-state/actual.ts';
import { readAddress } from './read-address.ts';

/** The session in SSH_CONNECTION (ssh(1)), `CLIENT PORT SERVER PORT`; empty without a client address. */
export function readSshConnection(variable = ''): SshClient[] {
  const [client = '', , server = ''] = variable.split(' ');
  const address = readAddress(client);
  return address === null ? [] : [{ address, local: readAddress(server) }];
}
