/**
 * A service that echoes secrets: it answers a request with all that the request contains, each time in another form.
 *
 * @module
 */
import { createServer } from 'node:http';

type Answer = (said: string) => { status: number; headers?: Record<string, string>; body: string };

const json = { 'content-type': 'application/json' };

const answers: readonly Answer[] = [
  (said) => ({ status: 422, headers: json, body: JSON.stringify({ message: said, errors: { [said]: [said] } }) }),
  (said) => ({ status: 403, headers: json, body: JSON.stringify({ message: said }) }),
  (said) => ({
    status: 302,
    headers: { location: `http://127.0.0.1:8080/?said=${encodeURIComponent(said)}` },
    body: said,
  }),
  (said) => ({
    status: 201,
    headers: json,
    body: JSON.stringify({ data: { [said]: said, peer: { [said]: said, address: said } } }),
  }),
  (said) => ({ status: 201, headers: json, body: said }),
];

let count = 0;

createServer(async (request, reply) => {
  const body: Buffer[] = [];
  for await (const chunk of request) body.push(chunk);
  const said = `${request.method} ${request.url} ${JSON.stringify(request.headers)} ${Buffer.concat(body)}`;
  const answer = answers[count % answers.length] as Answer;
  count += 1;
  const { status, headers, body: text } = answer(said);
  reply.writeHead(status, headers).end(text);
}).listen(8080, '127.0.0.1', () => process.stdout.write('listening\n'));
