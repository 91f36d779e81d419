import type { exitCodes } from '../../src/cli/exit-code.ts';

/** What the program ends with, in words. */
export const exitMeanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  done: 'Done.',
  failed: 'Failed.',
  usage: 'Wrong usage or bad input.',
  pending: 'Changes are pending (plan), not healthy (status --check), not yet (wait), or a packet stops (explain).',
  refused: 'Refused by the control plane.',
  unreachable: 'The control plane is out of reach, or asks to wait.',
};

/** The variables that are no flag's own. */
export const variables: Readonly<Record<string, string>> = {
  CPN_ENROLLMENT_KEY: 'The enrolment key for cpn join, as it stands or as file:PATH.',
  CPN_API_URL: 'Base address of the control plane, where --api is not given.',
  CPN_API_TOKEN: "A personal token, or file:PATH of a file that holds it, instead of the stored login's.",
  CPN_LOG_LEVEL: 'What is logged: trace, debug, info, warn, error, fatal or silent.',
  CPN_CONFIG_DIR: 'Folder of the wg-quick files; /etc/wireguard unless set.',
  CPN_STATE_DIR: 'Folder of the state; /var/lib/cpn unless set.',
  CPN_RUNTIME_DIR: 'Folder of the locks; /run/cpn unless set.',
  CPN_HOST_DRIVER:
    'What keeps this host: linux, wg-quick or windows; that of the operating system unless set. With wg-quick, wg and wg-quick are all that is needed; a connector and a full tunnel need linux.',
  XDG_CONFIG_HOME: "Parent of the folder cpn with the administrator's login; ~/.config unless set.",
  SSH_CONNECTION: 'Set by sshd: where the SSH client is that no route may cut off.',
  JOURNAL_STREAM: 'Set by systemd: where stderr is the journal, lines of the log bear their priority.',
  NOTIFY_SOCKET: 'Set by systemd: where the daemon and the control plane say that they are ready, and how it goes.',
  WATCHDOG_USEC: 'Set by systemd: how often they have to say that they are alive, in microseconds.',
  CREDENTIALS_DIRECTORY: 'Set by systemd: where cpn join finds the credential cpn.enrollment-key.',
  NO_COLOR: 'Set to anything, it keeps colours out of what is shown.',
  NODE_EXTRA_CA_CERTS: 'A file with the certificate of your own issuer, by which the control plane is trusted.',
  TERM: 'Where it is dumb, steps are a line each and nothing is drawn over.',
};

export const files: Readonly<Record<string, string>> = {
  '/etc/wireguard/IF.conf': 'The wg-quick file of an interface; works with plain wg-quick and without this program.',
  '/var/lib/cpn/IF.json': 'Keys, token, options, last map, and the receipt of every change made to the host.',
  '/etc/cpn/join.conf':
    'How cpn-join.service joins: flags of cpn join without their dashes, each with = and its value.',
  '/run/cpn/': 'Locks, and notes of the last passes.',
  '~/.config/cpn/login.json': "An administrator's login.",
  '/var/lib/cpn-control-plane/': "The embedded control plane's database.",
};
