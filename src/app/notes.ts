import type { Notes } from '../store/store.ts';
import type { Tools } from './tools.ts';

/** Changes a part of a network's notes. */
export async function amendNotes(tools: Tools, link: string, part: Partial<Notes>): Promise<void> {
  await tools.store.writeNotes(link, { ...(await tools.store.readNotes(link)), ...part });
}
