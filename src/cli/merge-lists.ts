import type { RawReply } from '../api/raw-service.ts';

/**
 * Replies whose bodies are lists become one, at the end, as `gh api --paginate` makes of them; others go on as they come. The entries
 * keep their bytes: numbers may be longer than JavaScript's.
 */
export async function* mergeLists(pages: AsyncIterable<RawReply>): AsyncGenerator<RawReply> {
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

/** What is between the brackets of a list; null for what is no list. */
function entriesIn({ json, bytes }: RawReply): string | null {
  const text = json ? Buffer.from(bytes).toString().trim() : '';
  return text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1).trim() : null;
}
