import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { REPOSITORY } from '../lab/built-program.ts';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';
import { run } from '../lab/run.ts';

/** What a service answers, by the operationId of contract.openapi.yaml; an operation that is left out answers with its example there. */
export type Replies = Readonly<Record<string, unknown>>;

const prism = fileURLToPath(import.meta.resolve('@stoplight/prism-cli'));
const redocly = join(REPOSITORY, 'node_modules', '.bin', 'redocly');
const contract = join(import.meta.dirname, 'contract.openapi.yaml');
const port = 4010;

/**
 * A service with the public contract and nothing else: Prism, made from the plain description alone. It refuses what the
 * description does not allow, such as a body, a missing credential or an operation.
 */
export class MockService {
  readonly host: Host;
  readonly url: string;
  #process: Process | undefined;

  private constructor(host: Host) {
    this.host = host;
    this.url = `http://${host.address}:${port}`;
  }

  static async start(host: Host, replies: Replies): Promise<MockService> {
    const service = new MockService(host);
    await service.answer(replies);
    return service;
  }

  /** Answers so from now on. */
  async answer(replies: Replies): Promise<void> {
    await this.stop();
    const file = join(this.host.folder, 'service.json');
    await writeFile(file, JSON.stringify(await describeService(replies)));
    const argv = ['node', prism, 'mock', file, '--host', this.host.address, '--port', String(port)];
    this.#process = this.host.spawn(argv, { env: { NO_COLOR: '1' } });
    await this.#process.waitForLine(/Prism is listening/, 30_000);
  }

  async stop(): Promise<void> {
    await this.#process?.stop();
    this.#process = undefined;
  }

  /** The requests since the last change of its answers, such as `POST /api/networks/enroll`, but for its description: it serves none. */
  get requests(): readonly string[] {
    const lines = this.#said().matchAll(/\[HTTP SERVER\] (\w+) (\S+) .*Request received/g);
    const asked = [...lines].map(([, method = '', path = '']) => `${method.toUpperCase()} ${path}`);
    return asked.filter((request) => request !== 'GET /docs/api/openapi.json');
  }

  /** The violations of the description that Prism reports. */
  get violations(): readonly string[] {
    return [...this.#said().matchAll(/Violation: (.*)/g)].map(([, what = '']) => what);
  }

  /** All that it printed: none of it is a secret, unless a client put one where it does not belong. */
  #said(): string {
    const { stdout = '', stderr = '' } = this.#process?.output ?? {};
    return stdout + stderr;
  }
}

let plain: Promise<string> | undefined;

/** The plain description as JSON, with other examples. */
async function describeService(replies: Replies) {
  plain ??= bundle();
  const description = JSON.parse(await plain);
  const operations = Object.values<Record<string, Operation>>(description.paths).flatMap((item) => Object.values(item));
  for (const [id, reply] of Object.entries(replies)) {
    const operation = operations.find(({ operationId }) => operationId === id);
    const [status] = Object.keys(operation?.responses ?? {}).filter((each) => each.startsWith('2'));
    const content = operation?.responses[status ?? '']?.content['application/json'];
    if (content === undefined) throw new Error(`the contract has no operation ${id} with a reply`);
    content.example = reply;
  }
  return description;
}

interface Operation {
  readonly operationId?: string;
  readonly responses: Record<string, { content: Record<string, { example?: unknown }> }>;
}

async function bundle(): Promise<string> {
  const argv = [redocly, 'bundle', contract, '--ext', 'json', '--dereferenced'];
  const env = { PATH: process.env.PATH ?? '', REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  return (await run(argv, { env, label: 'redocly bundle' })).stdout;
}
