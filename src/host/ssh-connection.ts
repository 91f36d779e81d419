import type { SshClient } from '../core/actual.ts';
import { readAddress } from './read-address.ts';

/** The session that SSH_CONNECTION of ssh(1) names: `CLIENT PORT SERVER PORT`; none where it names no client. */
export function readSshConnection(variable = ''): SshClient[] {
  const [client = '', , server = ''] = variable.split(' ');
  const address = readAddress(client);
  return address === null ? [] : [{ address, local: readAddress(server) }];
}
