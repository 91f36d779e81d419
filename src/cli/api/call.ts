import type { RawReply, RawService } from '../../api/raw-service.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import { openRaw } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import type { Input } from '../input/input.ts';
import { describeBytes, note } from '../output/output.ts';
import { deliver } from '../output/terminal/stdout.ts';
import { checkPlace, saveReply } from './files.ts';
import { type ApiRequest, readRequest } from './request.ts';
import { headToText, replyToBytes } from './show-reply.ts';
import { transferMeter } from './transfer-meter.ts';

export async function callApi(input: Input): Promise<number> {
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
      onRefusal: (refused) => void showRefused(refused, input),
      ...(fileBytes > 0 && { onSent: upload.add }),
      ...(output !== undefined && { sink: (body) => save(output, body) }),
    });
    upload.end();
    // The reply to a change may contain a secret that is shown only once.
    const isReading = request.method === 'GET' || request.method === 'HEAD';
    if (output === undefined) return await show(reply, input, isReading ? write : deliver);
    if (input.switch('include')) process.stdout.write(headToText(reply));
    return exitCodes.done;
  } finally {
    upload.end();
  }
}

/** Seconds. */
const patience = { usual: 30, withFiles: 600, longest: 86_400 };

async function show(reply: RawReply, input: Input, put: (bytes: Uint8Array) => unknown = write): Promise<number> {
  const shown = replyToBytes(reply, { include: input.switch('include'), terminal: process.stdout.isTTY });
  if (shown === null) {
    note(
      `the reply is binary (${describeBytes(reply.bytes.length)}) and is not printed to a terminal; repeat with --output FILE`,
    );
    return exitCodes.failed;
  }
  await put(shown);
  return exitCodes.done;
}

/** Ends the body with a line feed: the error on stderr follows, perhaps in the same log. */
function showRefused(refused: RawReply, input: Input): Promise<number> {
  return show(refused.bytes.length === 0 ? refused : endLine(refused), input);
}

function write(bytes: Uint8Array): void {
  process.stdout.write(bytes);
}

/** Prints or saves the pages of a list. Each page ends with a newline. */
async function showPages(service: RawService, request: ApiRequest['request'], input: Input): Promise<number> {
  const pages = service.pages({ ...request, onRefusal: (refused) => void showRefused(refused, input) });
  // With headers, pages stay separate.
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

/**
 * Merges list bodies into one at the end, as `gh api --paginate` does; passes on other replies.
 * Keeps the bytes of entries: numbers may exceed those of JavaScript.
 */
async function* mergeLists(pages: AsyncIterable<RawReply>): AsyncGenerator<RawReply> {
  const lists: { readonly reply: RawReply; readonly entries: string }[] = [];
  for await (const reply of pages) {
    const entries = entriesIn(reply);
    if (entries === null) yield reply;
    else lists.push({ reply, entries });
  }
  const [first] = lists;
  if (first === undefined) return;
  const all = lists.map(({ entries }) => entries).filter((entries) => entries !== '');
  yield { ...first.reply, bytes: Buffer.from(`[${all.join(',')}]`) };
}

/** The text between the brackets of a list. Null for any other body. */
function entriesIn({ json, bytes }: RawReply): string | null {
  const text = json ? Buffer.from(bytes).toString().trim() : '';
  return text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1).trim() : null;
}
