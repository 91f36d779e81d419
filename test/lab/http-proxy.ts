import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from './eventually.ts';
import type { Host } from './host.ts';
import type { Process } from './process.ts';

/** Debian's tinyproxy on a host of the lab, at port 3128. */
export class HttpProxy {
  readonly host: Host;
  readonly #file: string;
  #process: Process | null = null;

  private constructor(host: Host) {
    this.host = host;
    this.#file = join(host.folder, 'tinyproxy.conf');
  }

  static async start(host: Host, ...settings: string[]): Promise<HttpProxy> {
    const proxy = new HttpProxy(host);
    await proxy.restart(...settings);
    return proxy;
  }

  /** Its URL at the host's first address. */
  get url(): string {
    return `http://${this.host.address}:3128`;
  }

  /** The hosts and ports to which it was asked to connect since it was last started. */
  get targets(): readonly string[] {
    const { stdout = '', stderr = '' } = this.#process?.output ?? {};
    return [...`${stdout}${stderr}`.matchAll(/Request .*?: CONNECT (\S+)/g)].map(([, target = '']) => target);
  }

  /** Starts it with other settings of tinyproxy.conf(5), or again; all its connections end. */
  async restart(...settings: string[]): Promise<void> {
    await this.stop();
    const lines = ['Port 3128', 'Timeout 600', 'MaxClients 100', 'LogLevel Connect', ...settings];
    await writeFile(this.#file, `${lines.join('\n')}\n`);
    this.#process = this.host.spawn(['tinyproxy', '-d', '-c', this.#file]);
    await eventually('the proxy listens', async () => {
      const { stdout } = await this.host.exec(['ss', '-Hltn', 'sport', '= :3128']);
      return stdout !== '';
    });
  }

  async stop(): Promise<void> {
    await this.#process?.stop();
    this.#process = null;
  }
}
