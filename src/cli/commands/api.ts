import { apiFlags, apiMethods } from '../input/flags.ts';
import type { Command } from '../parse/command.ts';

export const api: Command = {
  name: 'api',
  argument: {
    usage: '<method> <path>',
    summary: { method: 'GET, HEAD, POST, PUT, PATCH or DELETE', path: 'path of the API' },
    choices: { method: apiMethods },
  },
  summary: 'Call any API operation with your login, and print the reply',
  flags: {
    ...apiFlags,
    field: {
      kind: 'list',
      value: 'KEY=VALUE',
      summary:
        'field of the JSON body, or of the query with GET and DELETE; true, false, null and integers are typed, @FILE reads a file, KEY[SUB]=V and KEY[]=V build objects and lists',
    },
    'raw-field': { kind: 'list', value: 'KEY=VALUE', summary: 'field that is always text' },
    form: {
      kind: 'list',
      value: 'KEY=@FILE',
      summary: 'file to upload, or text with KEY=VALUE; sends multipart/form-data, fields included',
    },
    input: {
      kind: 'text',
      value: 'FILE',
      summary: 'file to send as the body, or - for standard input; fields become the query',
    },
    header: { kind: 'list', value: 'NAME: VALUE', summary: 'request header' },
    paginate: {
      kind: 'switch',
      summary: 'fetch all pages of a list; merges pages that are JSON lists',
    },
    include: { kind: 'switch', summary: 'print status and headers before the body' },
    output: { kind: 'text', value: 'FILE', summary: 'write the body to this file' },
    timeout: {
      kind: 'text',
      value: 'SECONDS',
      summary: 'timeout of the call, or of each page',
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
    const { callApi } = await import('../api/call.ts');
    return callApi(input);
  },
};
