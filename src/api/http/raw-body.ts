import { createReadStream, openAsBlob } from 'node:fs';
import { basename } from 'node:path';
import { FormData } from 'undici';
import type { RequestBody } from './attempt.ts';

export type RawBody =
  | { readonly kind: 'json'; readonly value: object }
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  /** A regular file of `size` bytes, sent unmodified. */
  | { readonly kind: 'file'; readonly path: string; readonly size: number }
  | { readonly kind: 'form'; readonly parts: readonly FormPart[] };

/** A part of `multipart/form-data` (RFC 7578): a text, or a file under its own name. */
export type FormPart =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly path: string };

/** Prepares a body for repeated sending. Files are streamed, never held whole in memory. */
export async function openContent(body: RawBody): Promise<RequestBody> {
  switch (body.kind) {
    case 'json': {
      const text = JSON.stringify(body.value);
      return { headers: jsonType, open: () => text };
    }
    case 'bytes':
      return { headers: jsonType, open: () => body.bytes };
    case 'file': {
      const { path, size } = body;
      const headers = { ...jsonType, 'content-length': String(size) };
      return { headers, open: () => (size === 0 ? null : createReadStream(path, { end: size - 1 })) };
    }
    case 'form': {
      const form = await openForm(body.parts);
      // The form sets the type, which contains its boundary.
      return { headers: {}, open: () => form };
    }
  }
}

const jsonType = { 'content-type': 'application/json' };

async function openForm(parts: readonly FormPart[]): Promise<FormData> {
  const form = new FormData();
  for (const part of parts) {
    if ('value' in part) form.append(part.name, part.value);
    else form.append(part.name, await openAsBlob(part.path), basename(part.path));
  }
  return form;
}
