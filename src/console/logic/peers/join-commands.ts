import type { PeerType } from '../../../contract/peer.ts';

export interface JoinFields {
  /** The address of the control plane for the host; see {@link readServiceAddress}. */
  readonly api: string;
  readonly token: string;
  readonly type: PeerType;
  /** The address at which others dial the host; see {@link isEndpoint}. */
  readonly endpoint?: string;
}

export interface JoinCommand {
  readonly id: 'debian' | 'container' | 'cloud-init';
  readonly title: string;
  readonly hint: string;
  readonly text: string;
  /** True for a command that prompts for the key. */
  readonly promptsForKey: boolean;
}

export function makeJoinCommands(request: JoinFields): readonly JoinCommand[] {
  const flags = ['--api', quote(request.api), ...(isInsecure(request.api) ? ['--insecure-http'] : [])];
  const endpoint = request.endpoint === undefined ? [] : ['--endpoint', quote(request.endpoint)];
  // Without the key: other users see the arguments of a process, and the shell keeps its history.
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

/** True if a host needs `--insecure-http` to send its key: plain http to another host. */
const isInsecure = (api: string): boolean => api.startsWith('http:') && !isLoopback(api);

/** True for an address that no other host can reach. */
export function isLoopback(api: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(new URL(api).hostname);
}

/** The address of a control plane without a trailing slash; null if `cpn join` would refuse it. */
export function readServiceAddress(typed: string): string | null {
  const text = typed.trim();
  if (!/^https?:\/\/[^\s\p{Cc}?#]+$/iu.test(text) || !URL.canParse(text)) return null;
  const { origin, pathname, username, password } = new URL(text);
  return username === '' && password === '' ? `${origin}${pathname}`.replace(/\/+$/, '') : null;
}

/** The same as in core/net/endpoint.ts. */
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

/** Quotes a text as one shell word. */
function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
