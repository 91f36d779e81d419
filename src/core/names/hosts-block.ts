import type { NetworkMap } from '../map/model.ts';
import { assignLabels, type PeerLabels } from './hosts-label.ts';

/** The domain of all names. `internal` is for private use (ICANN resolution 2024.07.29.06). */
export const peerDomain = 'cpn.internal';

/** The first line of our block. */
const begins = (link: string) => `# BEGIN cpn ${link}`;
const ends = (link: string) => `# END cpn ${link}`;

/**
 * A network's block in hosts(5), with one line for each peer, this host included, in the order of
 * ids. A renamed peer keeps its earlier names (`held`). `label` names the network.
 */
export function renderBlock(
  link: string,
  { peers }: NetworkMap,
  label: string,
  held: readonly PeerLabels[] = [],
): string {
  const addresses = new Map(peers.map(({ id, address }) => [id, address]));
  const lines = assignLabels(peers, held).map(({ peer, labels }) => {
    const names = labels.map((each) => `${each}.${label}.${peerDomain}`);
    return `${addresses.get(peer)} ${names.join(' ')}`;
  });
  return [`${begins(link)} (written by cpn; edits are lost)`, ...lines, ends(link), ''].join('\n');
}

/** The lines of a block without its markers. */
export function linesOf(block: string): string[] {
  return block.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

/** `isWhole` is false if a marker lacks its counterpart, so that our lines are unknown. */
export interface FoundBlock {
  /** Null without a block. Several blocks are joined. */
  readonly block: string | null;
  readonly isWhole: boolean;
}

export function findBlock(text: string, link: string): FoundBlock {
  const { parts, isWhole } = split(text, link);
  const ours = parts.filter((part) => part.isOurs);
  return { block: ours.length === 0 ? null : ours.map((part) => part.text).join(''), isWhole };
}

/** Replaces or removes our block, and no other byte. Returns `text` if our block is not whole. */
export function replaceBlock(text: string, link: string, block: string | null): string {
  const { parts, isWhole } = split(text, link);
  if (!isWhole) return text;
  const first = parts.findIndex((part) => part.isOurs);
  if (first >= 0) {
    return parts.map((part, index) => (part.isOurs ? (index === first && block) || '' : part.text)).join('');
  }
  if (block === null) return text;
  // Inserts before an unterminated last line: a line break added to it could not be removed later.
  return text === '' || text.endsWith('\n') ? text + block : block + text;
}

interface Part {
  readonly text: string;
  readonly isOurs: boolean;
}

function split(text: string, link: string): { parts: readonly Part[]; isWhole: boolean } {
  // Fast path: a hosts file that blocks advertising may have hundreds of thousands of lines.
  if (!text.includes(begins(link)) && !text.includes(ends(link))) return { parts: [outside(text)], isWhole: true };
  const parts: Part[] = [];
  let isInside = false;
  let isWhole = true;
  let run = '';
  for (const line of text.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
    const isBegin = isMark(line, begins(link));
    const isEnd = isMark(line, ends(link));
    if (isBegin ? isInside : isEnd && !isInside) isWhole = false;
    if (isBegin && !isInside) {
      parts.push(outside(run));
      run = '';
    }
    run += line;
    if (isBegin) isInside = true;
    if (!isEnd) continue;
    parts.push({ text: run, isOurs: true });
    run = '';
    isInside = false;
  }
  parts.push({ text: run, isOurs: isInside });
  return { parts, isWhole: isWhole && !isInside };
}

function outside(text: string): Part {
  return { text, isOurs: false };
}

/** Other words, or a carriage return of an editor, may follow the marker. */
function isMark(line: string, mark: string): boolean {
  return line.startsWith(mark) && /^\s/.test(`${line.slice(mark.length)}\n`);
}
