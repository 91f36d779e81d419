import type { PeerType } from '../../../contract/peer.ts';

export interface JoinFields {
  /** Where the host reaches the control plane; see {@link readServiceAddress}. */
  readonly api: string;
  readonly token: string;
  readonly type: PeerType;
  /** Where others dial the host; see {@link isEndpoint}. */
  readonly endpoint?: string;
}

/** What to paste on a host to enrol it, for one kind of host. */
export interface JoinCommand {
  readonly id: 'debian' | 'container' | 'cloud-init';
  readonly title: string;
  readonly hint: string;
  readonly text: string;
  /** True for a command that prompts for the key. */
  readonly promptsForKey: boolean;
}

/** The commands that enrol a host, for each kind of host. */
export function makeJoinCommands(request: JoinFields): readonly JoinCommand[] {
  const flags = ['--api', quote(request.api), ...(isInsecure(request.api) ? ['--insecure-http'] : [])];
  const endpoint = request.endpoint === undefined ? [] : ['--endpoint', quote(request.endpoint)];
  // Without the key: other users of the host see the arguments of a process, and the shell's history keeps what is typed.
  const join = `join ${[...flags, '--type', request.type, ...endpoint].join(' ')}`;
  return [
    {
      id: 'debian',
      title: 'Debian',
      hint: 'In a shell of a host that has cpn. With the package, the daemon starts now and at boot. Without it, start the daemon after the join: sudo cpn run',
      text: `sudo cpn ${join}`,
      promptsForKey: true,
    },
    {
      id: 'container',
      title: 'Container',
      hint: 'With podman or docker, and the image that scripts/package container builds.',
      text: `${container('-it --rm', join)} && ${container('-d --name cpn --restart always', 'run')}`,
      promptsForKey: true,
    },
    {
      id: 'cloud-init',
      title: 'cloud-init',
      hint: 'As user data of a machine whose image has the package of cpn. It joins at its first boot.',
      text: renderCloudInit(request),
      promptsForKey: false,
    },
  ];
}

const resources =
  '--network host --cap-add NET_ADMIN --device /dev/net/tun -v cpn:/var/lib/cpn -v wireguard:/etc/wireguard';
const container = (options: string, command: string) => `sudo podman run ${options} ${resources} cpn ${command}`;

function renderCloudInit({ api, token, type, endpoint }: JoinFields): string {
  return `#cloud-config
write_files:
  - path: /etc/cpn/join.conf
    permissions: "0644"
    content: |
      api = ${api}
      type = ${type}${endpoint === undefined ? '' : `\n      endpoint = ${endpoint}`}${isInsecure(api) ? '\n      insecure-http = yes' : ''}
  - path: /etc/credstore/cpn.enrollment-key
    permissions: "0600"
    content: ${token}
runcmd:
  - [systemctl, enable, --now, --no-block, cpn-join.service]
`;
}

/** True where a host refuses to send its key without being allowed to: plain http, but for the host itself. */
const isInsecure = (api: string): boolean => api.startsWith('http:') && !isLoopback(api);

/** True for an address that no other host reaches. */
export function isLoopback(api: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(new URL(api).hostname);
}

/** The address of a control plane as typed, without a slash at its end; null where `cpn join` would refuse it. */
export function readServiceAddress(typed: string): string | null {
  const text = typed.trim();
  if (!/^https?:\/\/[^\s\p{Cc}?#]+$/iu.test(text) || !URL.canParse(text)) return null;
  const { origin, pathname, username, password } = new URL(text);
  return username === '' && password === '' ? `${origin}${pathname}`.replace(/\/+$/, '') : null;
}

/** As in core/net/endpoint.ts. */
const namePattern =
  /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*(?!\d+$|0x[0-9a-f]*$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i;

/** True for `HOST:PORT`, `IPv4:PORT` and `[IPv6]:PORT`. */
export function isEndpoint(text: string): boolean {
  const [, host = '', port = ''] = /^(\[[0-9a-f:]+\]|[\w.-]+):([1-9]\d{0,4})$/i.exec(text) ?? [];
  if (Number(port) > 65535) return false;
  if (!/^\[|^[\d.]+$/.test(host)) return namePattern.test(host.replace(/\.$/, ''));
  const url = `http://${host}`;
  return URL.canParse(url) && (host.startsWith('[') || new URL(url).hostname === host);
}

/** As one word of a shell. */
function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
