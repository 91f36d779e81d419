import type { exitCodes } from '../../src/cli/exit-code.ts';

/** Exit codes in words. */
export const exitMeanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  done: 'Done.',
  failed: 'Failed.',
  usage: 'Wrong usage or bad input.',
  pending:
    'Pending changes (plan), unhealthy (status --check), timeout (wait), problems found (doctor), or packet dropped (explain).',
  refused: 'Refused by the control plane.',
  unreachable: 'The control plane is unreachable, or limits requests.',
};

/** Variables that do not stand for a flag. */
export const variables: Readonly<Record<string, string>> = {
  CPN_ENROLLMENT_KEY: 'Enrolment key for cpn join, or file:PATH of a file that holds it.',
  CPN_API_URL: 'URL of the control plane, if --api is not given.',
  CPN_API_TOKEN: 'Personal token to use instead of the stored login, or file:PATH of a file that holds it.',
  CPN_LOG_LEVEL: 'Log level: trace, debug, info, warn, error, fatal or silent.',
  CPN_CONFIG_DIR: 'Folder of the wg-quick files. Default: /etc/wireguard.',
  CPN_STATE_DIR: 'Folder of the state. Default: /var/lib/cpn.',
  CPN_RUNTIME_DIR: 'Folder of the locks. Default: /run/cpn.',
  CPN_HOST_DRIVER:
    'Host driver: linux, wg-quick or windows. Default: the one for the operating system. The wg-quick driver needs only wg and wg-quick; a connector and a full tunnel need linux.',
  XDG_CONFIG_HOME: "Parent of the folder cpn with the administrator's login. Default: ~/.config.",
  SSH_CONNECTION: 'Set by sshd: address of the SSH client; the guard refuses routes that would cut it off.',
  JOURNAL_STREAM: 'Set by systemd: if stderr is the journal, log lines start with their priority.',
  NOTIFY_SOCKET: 'Set by systemd: socket where the daemon and the control plane report readiness and status.',
  WATCHDOG_USEC: 'Set by systemd: watchdog timeout of both, in microseconds.',
  CREDENTIALS_DIRECTORY: 'Set by systemd: folder of the credential cpn.enrollment-key, which cpn join reads.',
  VISUAL: 'Editor of cpn rules edit, before EDITOR.',
  EDITOR: 'Editor of cpn rules edit, if VISUAL is not set.',
  NO_COLOR: 'Any value turns colours off.',
  NODE_EXTRA_CA_CERTS: 'File with more CAs to trust, in addition to those of Node and of this machine.',
  SSL_CERT_FILE: 'File with the CAs of this machine. SSL_CERT_DIR: folder of such files. Default: those of OpenSSL.',
  HTTPS_PROXY:
    'Proxy to a control plane at https, if --proxy is not given; cpn join saves it. HTTP_PROXY is the one for http.',
  NO_PROXY: 'Names, addresses and prefixes that are reached without the proxy of these variables.',
  TERM: 'With dumb, each step is a line of its own; nothing is redrawn.',
};

export const files: Readonly<Record<string, string>> = {
  '/etc/wireguard/IF.conf': 'wg-quick file of an interface; works with plain wg-quick, without cpn.',
  '/var/lib/cpn/IF.json': 'Keys, token, options, last map, and a receipt of every change to the host.',
  '/var/lib/cpn/former-memberships':
    'Identity and token of each network that was left while its control plane was unreachable, until its peer is removed.',
  '/etc/cpn/join.conf': 'Options of cpn-join.service: flags of cpn join without dashes, each with = and its value.',
  '/run/cpn/': 'Locks, the results of the last passes, and in serving/ the routes for which a connector is in service.',
  '~/.config/cpn/login.json': "An administrator's login.",
  '/var/lib/cpn-control-plane/': 'Database of the embedded control plane.',
};
