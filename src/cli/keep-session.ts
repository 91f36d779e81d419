import type { Session } from '../api/service.ts';
import { CpnError } from '../core/errors/index.ts';
import type { ServiceAddress } from '../core/net/service-address.ts';
import { connectAdmin, loginFolder } from './admin.ts';
import type { Input } from './input/input.ts';
import { warn } from './output/output.ts';

/**
 * Stores a session that the control plane opened in place of that of the stored login. Where the token comes from CPN_API_TOKEN there is
 * nowhere to store it: it is ended. What fails is a warning: the password is changed in any case.
 */
export async function keepSession(input: Input, service: ServiceAddress, { token }: Session): Promise<void> {
  try {
    const { readLogin, writeLogin } = await import('../store/login-file.ts');
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
