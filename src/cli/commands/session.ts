import type { Session } from '../../api/admin-service.ts';
import { CpnError, printable, Refused, WrongUsage } from '../../core/errors/index.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import { connectAdmin, describeProfile, loginFolder, openAdmin } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import { apiFlags, jsonFlag } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { note, print, printJson, warn } from '../output/output.ts';
import type { Command } from '../parse/command.ts';
import { createLimitFormat } from '../parse/network-limit-flags.ts';

export const whoami: Command = {
  name: 'whoami',
  summary: 'Show the logged-in user, and check that the token is valid',
  flags: { ...apiFlags, ...jsonFlag },
  examples: ['cpn whoami'],
  async run(input) {
    const service = await openAdmin(input);
    const profile = await service.profile();
    if (input.switch('json')) {
      printJson(profile);
      return exitCodes.done;
    }
    const { isAny, format } = await createLimitFormat(service, [profile]);
    const user = describeProfile(profile) || 'the token is valid; the control plane does not report its user';
    print(printable(isAny ? `${user}; limited to networks: ${format(profile)}` : user));
    return exitCodes.done;
  },
};

export const logout: Command = {
  name: 'logout',
  summary: 'Revoke the stored token and delete it',
  flags: apiFlags,
  examples: ['cpn logout'],
  async run(input) {
    if (input.environment.CPN_API_TOKEN !== undefined) {
      throw new WrongUsage(
        'CPN_API_TOKEN is set, but "cpn logout" ends the stored login; unset it, or revoke its token with "cpn token revoke"',
      );
    }
    const service = await openAdmin(input);
    const { removeLogin } = await import('../../store/login-file.ts');
    await service.logout().catch((error) => {
      // An expired token need not be revoked.
      if (!(error instanceof Refused && error.status === 401)) throw error;
    });
    await removeLogin(loginFolder(input));
    note('logged out');
    return exitCodes.done;
  },
};

/**
 * Stores the session that replaces the stored login's. With CPN_API_TOKEN it cannot be stored, so
 * it is ended. Failures are warnings: the password is already changed.
 */
export async function keepSession(input: Input, service: ServiceAddress, { token }: Session): Promise<void> {
  try {
    const { readLogin, writeLogin } = await import('../../store/login-file.ts');
    const folder = loginFolder(input);
    const login = input.environment.CPN_API_TOKEN === undefined ? await readLogin(folder, warn) : null;
    if (login !== null) return await writeLogin(folder, { ...login, token, session: true }, warn);
    warn('the session in CPN_API_TOKEN ended too; log in again');
    await (await connectAdmin(service, token, { attempts: 1, deadlineMs: 5_000 })).logout();
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    warn(`the new session is not stored; log in again with "cpn login": ${error.message}`);
  }
}
