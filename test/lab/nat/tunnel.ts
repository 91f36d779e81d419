import type { Host } from '../host.ts';
import type { Process } from '../process.ts';

/** A peer in `wg show IF dump`. */
export interface TunnelPeer {
  readonly endpoint: string | null;
  /** Seconds since the epoch; 0 without a handshake. */
  readonly handshakeAt: number;
  readonly received: number;
  readonly sent: number;
}

const start = `
ip link add wg0 type wireguard 2>/dev/null || wireguard-go wg0
wg genkey >"$HOME/key"
wg set wg0 listen-port $1 private-key "$HOME/key"
ip address add $2/24 dev wg0
ip link set wg0 up
echo "public key $(wg show wg0 public-key)"
while read -r command; do
  code=0
  eval "$command" || code=$?
  echo "exit code $code"
done
`;

/** A plain WireGuard interface, `wg0`, of which all is set with `wg`. */
export class Tunnel {
  readonly host: Host;
  readonly publicKey: string;
  readonly port: number;
  /** Its address in the tunnel. */
  readonly address: string;
  /** Runs commands: a change that a waiting shell makes is made at once, also on a busy machine. */
  readonly #shell: Process;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(host: Host, shell: Process, publicKey: string, port: number, address: string) {
    this.host = host;
    this.publicKey = publicKey;
    this.port = port;
    this.address = address;
    this.#shell = shell;
  }

  static async start(host: Host, port: number, address: string): Promise<Tunnel> {
    const shell = host.spawn(['sh', '-ec', start, 'sh', String(port), address], { holdInput: true });
    const [, publicKey = ''] = await shell.waitForLine(/^public key (.*)$/);
    return new Tunnel(host, shell, publicKey, port, address);
  }

  /** Sets peers, all in one `wg set`. */
  async set(...peers: readonly string[]): Promise<void> {
    await this.#run(`wg set wg0 ${peers.join(' ')}`);
  }

  /** Its peers by their keys. */
  async peers(): Promise<ReadonlyMap<string, TunnelPeer>> {
    const { stdout } = await this.host.exec(['wg', 'show', 'wg0', 'dump']);
    return new Map(
      stdout
        .trim()
        .split('\n')
        .slice(1)
        .map((line) => {
          const [key = '', , endpoint, , handshakeAt, received, sent] = line.split('\t');
          return [
            key,
            {
              endpoint: endpoint === undefined || endpoint === '(none)' ? null : endpoint,
              handshakeAt: Number(handshakeAt),
              received: Number(received),
              sent: Number(sent),
            },
          ];
        }),
    );
  }

  #run(command: string): Promise<void> {
    const ended = this.#last.then(async () => {
      this.#shell.writeInput(`${command}\n`);
      const [, code] = await this.#shell.waitForLine(/^exit code (\d+)$/);
      if (code !== '0') throw new Error(`${this.host.name}: ${command}: exit code ${code}`);
    });
    this.#last = ended.catch(() => {});
    return ended;
  }
}
