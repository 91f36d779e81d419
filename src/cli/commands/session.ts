import { printable, Refused } from '../../core/errors.ts';
import { describeProfile, loginFolder, openAdmin } from '../admin.ts';
import { apiFlags, type Command, jsonFlag } from '../command.ts';
import { exitCodes } from '../exit-code.ts';
import { note, print, printJson } from '../output.ts';

export const whoami: Command = {
  name: 'whoami',
  summary: 'Show who is logged in, and check that the token still holds',
  flags: { ...apiFlags, ...jsonFlag },
  examples: ['cpn whoami'],
  async run(input) {
    const profile = await (await openAdmin(input)).profile();
    if (input.switch('json')) printJson(profile);
    else print(printable(describeProfile(profile) || 'the service accepts the token, and does not say whose it is'));
    return exitCodes.done;
  },
};

export const logout: Command = {
  name: 'logout',
  summary: 'Revoke the stored token, and forget it',
  flags: apiFlags,
  examples: ['cpn logout'],
  async run(input) {
    const service = await openAdmin(input);
    const { removeLogin } = await import('../../store/login-file.ts');
    await service.logout().catch((error) => {
      // A token that holds no longer has nothing left to revoke.
      if (!(error instanceof Refused && error.status === 401)) throw error;
    });
    await removeLogin(loginFolder(input));
    note('logged out');
    return exitCodes.done;
  },
};
