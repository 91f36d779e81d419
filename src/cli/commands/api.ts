import type { RawReply, RawService } from '../../api/raw-service.ts';
import { WrongUsage } from '../../core/errors.ts';
import { openRaw } from '../admin.ts';
import { type AskedRequest, methods, readRequest } from '../api-request.ts';
import { describeBytes } from '../bytes.ts';
import { apiFlags, type Command } from '../command.ts';
import { exitCodes } from '../exit-code.ts';
import type { Input } from '../input.ts';
import { mergeLists } from '../merge-lists.ts';
import { note } from '../output.ts';
import { checkPlace, saveReply } from '../save-reply.ts';
import { headToText, replyToBytes } from '../show-reply.ts';
import { deliver } from '../stdout.ts';
import { transferMeter } from '../transfer-meter.ts';

export const api: Command = {
  name: 'api',
  argument: {
    usage: '<method> <path>',
    summary: 'a method, GET, HEAD, POST, PUT, PATCH or DELETE, and a path of the service',
    choices: { method: methods },
  },
  summary: 'Call any operation of the service with your login, where it needs one, and print its reply as it came',
  flags: {
    ...apiFlags,
    field: {
      kind: 'list',
      value: 'KEY=VALUE',
      summary:
        'a field of the JSON body, or of the query with GET and DELETE; true, false, null and whole numbers are what they say, @FILE is what stands in a file, KEY[SUB]=V and KEY[]=V make objects and lists; may be given several times',
    },
    'raw-field': { kind: 'list', value: 'KEY=VALUE', summary: 'a field that is text, whatever it looks like' },
    form: {
      kind: 'list',
      value: 'KEY=@FILE',
      summary: 'a file to upload, or a text with KEY=VALUE; the body becomes multipart/form-data, fields included',
    },
    input: {
      kind: 'text',
      value: 'FILE',
      summary: 'a file that is the body, or - for standard input; fields are the query',
    },
    header: { kind: 'list', value: 'NAME: VALUE', summary: 'a header; may be given several times' },
    paginate: {
      kind: 'switch',
      summary: 'follow the pages of a list to the last one, and print each; pages that are lists become one',
    },
    include: { kind: 'switch', summary: 'print status and headers before the body' },
    output: { kind: 'text', value: 'FILE', summary: 'write the body there, however long it is' },
    timeout: {
      kind: 'text',
      value: 'SECONDS',
      summary: 'for the whole call, or each page',
      byDefault: '30, with files 600',
    },
  },
  examples: [
    'cpn api GET /api/networks',
    "cpn api POST /api/networks --field name=lab --field private_cidr=10.78.0.0/24 --field 'routes[]=192.168.60.0/24'",
    'cpn api POST /api/files --form file=@site.zip --field zone_id=3',
    'cpn api GET /api/networks --paginate --field per_page=100',
    'cpn api GET /api/gdpr/export --output export.json',
  ],
  async run(input) {
    const { request, fileBytes } = await readRequest(input);
    const output = input.text('output');
    if (output !== undefined) await checkPlace(output);
    const usual = fileBytes > 0 || output !== undefined ? patience.withFiles : patience.usual;
    const seconds = input.number('timeout', 1, patience.longest) ?? usual;
    const paginates = input.switch('paginate');
    if (paginates && request.method !== 'GET')
      throw new WrongUsage(`--paginate is for GET; leave it out with ${request.method}`);
    const service = await openRaw(input, request, seconds * 1000);
    if (paginates) return showPages(service, request, input);
    const upload = transferMeter('sent', fileBytes);
    try {
      const reply = await service.send({
        ...request,
        onRefusal: (refused) => void show(refused, input),
        ...(fileBytes > 0 && { onSent: upload.add }),
        ...(output !== undefined && { sink: (body) => save(output, body) }),
      });
      upload.end();
      // The reply to what changed something may hold a secret that is shown this once.
      const isReading = request.method === 'GET' || request.method === 'HEAD';
      if (output === undefined) return await show(reply, input, isReading ? write : deliver);
      if (input.switch('include')) process.stdout.write(headToText(reply));
      return exitCodes.done;
    } finally {
      upload.end();
    }
  },
};

/** Seconds. */
const patience = { usual: 30, withFiles: 600, longest: 86_400 };

/** Returns the exit code of a reply that was no refusal. */
async function show(reply: RawReply, input: Input, put: (bytes: Uint8Array) => unknown = write): Promise<number> {
  const shown = replyToBytes(reply, { include: input.switch('include'), terminal: process.stdout.isTTY });
  if (shown === null) {
    note(
      `the reply is binary (${describeBytes(reply.bytes.length)}), and not for a terminal; repeat with --output FILE`,
    );
    return exitCodes.failed;
  }
  await put(shown);
  return exitCodes.done;
}

function write(bytes: Uint8Array): void {
  process.stdout.write(bytes);
}

/** Prints the pages of a list, or saves them all; each ends its line. */
async function showPages(service: RawService, request: AskedRequest['request'], input: Input): Promise<number> {
  const pages = service.pages({ ...request, onRefusal: (refused) => void show(refused, input) });
  // With their headers, pages stay apart.
  const replies = input.switch('include') ? pages : mergeLists(pages);
  const output = input.text('output');
  if (output !== undefined) {
    await save(output, bodiesOf(replies, input));
    return exitCodes.done;
  }
  for await (const reply of replies) {
    const exitCode = await show(endLine(reply), input);
    if (exitCode !== exitCodes.done) return exitCode;
  }
  return exitCodes.done;
}

async function* bodiesOf(replies: AsyncIterable<RawReply>, input: Input): AsyncGenerator<Uint8Array> {
  for await (const reply of replies) {
    if (input.switch('include')) process.stdout.write(headToText(reply));
    yield endLine(reply).bytes;
  }
}

function endLine(reply: RawReply): RawReply {
  const bytes = Buffer.from(reply.bytes);
  return bytes.at(-1) === 0x0a ? reply : { ...reply, bytes: Buffer.concat([bytes, Buffer.from('\n')]) };
}

async function save(path: string, body: AsyncIterable<Uint8Array>): Promise<void> {
  const meter = transferMeter('received', null);
  try {
    await saveReply(path, counted(body, meter.add));
  } finally {
    meter.end();
  }
}

async function* counted(body: AsyncIterable<Uint8Array>, count: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    count(chunk.length);
    yield chunk;
  }
}
