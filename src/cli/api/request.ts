import type { FormPart, RawBody } from '../../api/http/raw-body.ts';
import type { RawRequest } from '../../api/raw-service.ts';
import { Secret } from '../../core/crypto/secret.ts';
import { InvalidValue, quote, WrongUsage } from '../../core/errors/index.ts';
import { apiMethods } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { type ApiField, parseField, toObject, typed } from './fields.ts';
import { readBytes, readText, sizeOfFile } from './files.ts';

type Method = (typeof apiMethods)[number];

export interface ApiRequest {
  readonly request: Pick<RawRequest, 'method' | 'path' | 'query' | 'headers' | 'body' | 'secrets'>;
  readonly fileBytes: number;
}

/** @throws WrongUsage or InvalidValue, before any request */
export async function readRequest(input: Input): Promise<ApiRequest> {
  const method = readMethod(input.argument('method') ?? '');
  const path = input.argument('path') ?? '';
  const headers = readHeaders(input.each('header'));
  const forms = input.each('form').map((given) => parseField(given, '--form'));
  const source = input.text('input');
  checkTogether({ method, headers, forms, source });
  const { values, secrets } = await readFields(input);
  const asked = { method, path, headers, secrets };

  if (forms.length > 0) {
    const texts = values.map(({ field, text }) => ({ name: field.name, value: text }));
    const { parts, bytes } = await readParts(forms);
    return { request: { ...asked, query: [], body: { kind: 'form', parts: [...texts, ...parts] } }, fileBytes: bytes };
  }
  const query = values.map(({ field, text }): [string, string] => [field.name, text]);
  if (source !== undefined) {
    const body = await readSource(source);
    return { request: { ...asked, query, body }, fileBytes: body.kind === 'file' ? body.size : 0 };
  }
  if (method === 'GET' || method === 'HEAD' || method === 'DELETE') {
    return { request: { ...asked, query, body: null }, fileBytes: 0 };
  }
  const body: RawBody | null = values.length === 0 ? null : { kind: 'json', value: toObject(values) };
  return { request: { ...asked, query: [], body }, fileBytes: 0 };
}

function readMethod(text: string): Method {
  const method = apiMethods.find((each) => each === text.toUpperCase());
  if (method === undefined) throw new InvalidValue('METHOD', text, `must be one of ${apiMethods.join(', ')}`);
  return method;
}

/** Headers that cpn sets from the login, the connection and the body. */
const reserved =
  /^(authorization|host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|accept-encoding|proxy-.*)$/;

function readHeaders(given: readonly string[]): Record<string, string> {
  const headers = new Map<string, string>();
  for (const line of given) {
    const [, name = '', value = ''] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\t]*?)[ \t]*$/.exec(line) ?? [];
    const key = name.toLowerCase();
    if (key === '')
      throw new WrongUsage(`--header ${quote(line.replace(/:.*$/s, ': ...'))} is not a header; write NAME: VALUE`);
    if (reserved.test(key)) {
      throw new WrongUsage(`--header ${name} cannot be set: cpn sets it; to use another token, set CPN_API_TOKEN`);
    }
    if (headers.has(key)) throw new WrongUsage(`--header ${name} was given twice; give it once`);
    headers.set(key, value);
  }
  return Object.fromEntries(headers);
}

interface Bodies {
  readonly method: Method;
  readonly headers: Readonly<Record<string, string>>;
  readonly forms: readonly ApiField[];
  readonly source: string | undefined;
}

function checkTogether({ method, headers, forms, source }: Bodies): void {
  const flag = forms.length > 0 ? '--form' : '--input';
  if (forms.length > 0 && source !== undefined) throw new WrongUsage('--form and --input exclude each other');
  if (forms.length === 0 && source === undefined) return;
  if (method === 'GET' || method === 'HEAD')
    throw new WrongUsage(`${flag} needs a method with a body; ${method} has none`);
  if (forms.length > 0 && headers['content-type'] !== undefined) {
    throw new WrongUsage('--header Content-Type cannot be given with --form, which sets it');
  }
}

/** The fields with their values: typed for JSON, and as text for a query or a form. */
async function readFields(input: Input) {
  const fields = [
    ...input.each('field').map((given) => parseField(given, '--field')),
    ...input.each('raw-field').map((given) => parseField(given, '--raw-field')),
  ];
  const secrets: Secret[] = [];
  const values = [];
  for (const field of fields) {
    const given = field.text ?? '';
    const isFile = field.flag === '--field' && given.startsWith('@');
    const text = isFile ? await readText(given.slice(1), `--field ${field.name}`) : given;
    if (isFile) secrets.push(new Secret(text), new Secret(text.trim()));
    values.push({ field, text, value: isFile || field.flag === '--raw-field' ? text : typed(text) });
  }
  return { values, secrets };
}

async function readParts(forms: readonly ApiField[]): Promise<{ parts: FormPart[]; bytes: number }> {
  const parts: FormPart[] = [];
  let bytes = 0;
  for (const { name, text } of forms) {
    const value = text ?? '';
    if (!value.startsWith('@')) {
      parts.push({ name, value });
      continue;
    }
    const path = value.slice(1);
    const size = await sizeOfFile(path, `--form ${name}`);
    if (size === null) throw new WrongUsage(`--form ${name} names ${path}, which is not a regular file`);
    parts.push({ name, path });
    bytes += size;
  }
  return { parts, bytes };
}

async function readSource(source: string): Promise<RawBody> {
  const size = source === '-' ? null : await sizeOfFile(source, '--input');
  if (size === null) return { kind: 'bytes', bytes: await readBytes(source, '--input') };
  return { kind: 'file', path: source, size };
}
