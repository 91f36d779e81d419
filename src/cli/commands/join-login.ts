import type { AdminService } from '../../api/admin-service.ts';
import { Secret } from '../../core/crypto/secret.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';
import { describeList } from '../../core/names/find-named.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import { connectAdmin, findNamed, naming } from '../admin.ts';
import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { withEnvironmentProxy } from '../input/service-address.ts';
import { progress } from '../output/output.ts';
import { confirmAddress, endSession, openSession } from './login.ts';

/** The flags of a join by a person instead of a key. A file of a join has none of them. */
export const loginFlags = {
  login: {
    kind: 'switch',
    summary: 'log in and join as an own device of yours, without a key; the session ends with the join',
  },
  network: {
    kind: 'text',
    value: 'NETWORK',
    summary: 'id or name of the network of --login; not needed if only one lets you enrol own devices',
  },
  email: { kind: 'text', value: 'EMAIL', summary: 'e-mail address of --login, instead of the console' },
  browser: {
    kind: 'switch',
    summary: 'for --login, open the console on this machine; --no-browser shows a code for a browser anywhere',
    byDefault: 'yes',
  },
  'password-file': { kind: 'text', value: 'PATH', summary: 'file that holds only the password of --login' },
} satisfies Flags;

/** Refuses flags that exclude each other, before a prompt. @throws WrongUsage */
export function checkLoginFlags(input: Input): void {
  // A variable may be there for other commands.
  const given = (flag: string) => input.isTyped(flag);
  if (!input.switch('login')) {
    const needs = ['network', 'email', 'browser', 'password-file'].find(given);
    if (needs !== undefined) throw new WrongUsage(`--${needs} is for --login; add --login, or leave it out`);
    return;
  }
  const excluded = ['from-config', 'token-file'].find(given);
  if (excluded !== undefined) throw new WrongUsage(`--${excluded} and --login exclude each other; leave one out`);
  if (input.argument('key') !== undefined)
    throw new WrongUsage('an enrolment key and --login exclude each other; leave one out');
  const type = input.text('type');
  if (type !== undefined && type !== 'admin_device')
    throw new WrongUsage(
      `--login joins an admin_device, not ${type}; leave out --type, or join with a key of an admin`,
    );
}

/**
 * Logs a person in, and makes a key with which this host enrols as an own device of that person.
 * The session ends before the join: nothing of it stays on this host.
 * @returns the key, and the service with the confirmed user of the listening program
 */
export async function obtainOwnKey(
  input: Input,
  address: ServiceAddress,
): Promise<{ readonly token: Secret; readonly service: ServiceAddress }> {
  const service = withEnvironmentProxy(await confirmAddress(address, null), input.environment);
  const session = await openSession(input, service);
  const admin = await connectAdmin(service, session.value);
  try {
    progress('making a key for this device');
    const network = await chooseNetwork(admin, input.text('network'));
    return { token: new Secret((await admin.createOwnDevice(network, {})).enrollment_token), service };
  } finally {
    await endSession(admin, 'the session of this login is still open');
  }
}

async function chooseNetwork(admin: AdminService, named: string | undefined): Promise<Id> {
  if (!(await admin.describes('own-devices')))
    throw new WrongUsage('this control plane has no own devices of users; join with a key of an admin');
  const networks = await admin.listNetworks();
  // The control plane names the reason of a refusal.
  if (named !== undefined) return findNamed(networks, named, 'network').id;
  const { role } = await admin.profile();
  const open = networks.filter(({ self_enroll: own }) => own?.roles.some((each) => each === role));
  const [only, ...more] = open;
  if (only === undefined)
    throw new WrongUsage(
      `no network lets ${role ?? 'you'} enrol own devices; an admin makes a key with "cpn key create"`,
    );
  if (more.length > 0)
    throw new WrongUsage(`several networks let you enrol own devices; give --network: ${describeList(open, naming)}`);
  return only.id;
}
