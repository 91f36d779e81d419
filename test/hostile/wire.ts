import type { HostRequest, Row, WireReply } from './malicious-reply.ts';
import { enrolment, network } from './true-replies.ts';

type Fields = Record<string, unknown>;

/** A reply as it goes over the wire, whether or not HTTP allows it. */
export interface Raw {
  /** `200 OK` by default. */
  readonly status?: string;
  /** Whole lines, without their ends, in place of `Content-Type: application/json`. */
  readonly headers?: readonly string[];
  readonly body?: string | Buffer;
  /** Whether `Content-Length` has the length of the body; else its end is that of the connection. */
  readonly measured?: boolean;
}

export const jsonType = 'Content-Type: application/json';

/** The bytes of a reply, characters of headers one byte each. */
export function raw({ status = '200 OK', headers = [jsonType], body = '', measured = true }: Raw): Buffer {
  const bytes = Buffer.from(body);
  const lines = [`HTTP/1.1 ${status}`, ...headers, ...(measured ? [`Content-Length: ${bytes.length}`] : [])];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`, 'latin1'), bytes]);
}

/** One reply, and the end of the connection. */
export function whole(reply: Raw): WireReply {
  return { bytes: [raw(reply)], ending: 'end' };
}

/** A reply of JSON, under another revision than the true one. */
export function json(body: unknown, headers: readonly string[] = ['ETag: "13"']): WireReply {
  return whole({ headers: [jsonType, ...headers], body: JSON.stringify(body) });
}

/** The same bytes for every request. */
export function always(reply: WireReply): Row['make'] {
  return () => reply;
}

/** The map with changes to the network and to the peer `edge`. */
export function map(changes: Fields, ofEdge: Fields = {}): Row['make'] {
  return (request) => json({ data: network(request, changes, ofEdge) });
}

/** The map as a text that is no valid JSON any more. */
export function mapText(change: (text: string, request: HostRequest) => string): Row['make'] {
  return (request) =>
    whole({
      headers: [jsonType, 'ETag: "13"'],
      body: change(JSON.stringify({ data: network(request) }), request),
    });
}

/** The reply to an enrolment with changes to it, to the network in it and to this host. */
export function enrolled(changes: Fields, ofNetwork: Fields = {}, ofSelf: Fields = {}): Row['make'] {
  return (request) => {
    const body = JSON.stringify({ data: enrolment(request, changes, ofNetwork, ofSelf) });
    return whole({ status: '201 Created', body });
  };
}
