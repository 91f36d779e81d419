import type { NetworkMap } from '../map/model.ts';
import { assignLabels, type PeerLabels } from './hosts-label.ts';

/** All names end in this; `internal` is for private use alone (ICANN resolution 2024.07.29.06). */
const domain = 'cpn.internal';

/** The lines between which a block of ours is. */
const begins = (link: string) => `# BEGIN cpn ${link}`;
const ends = (link: string) => `# END cpn ${link}`;

/**
 * The block of a network in a hosts file (hosts(5)): a line a peer, this host's own included, in the order of their ids.
 *
 * A peer that was renamed is found by its earlier names too.
 *
 * @param label the network's own label
 * @param held the labels that this host gave peers before
 */
export function renderBlock(
  link: string,
  { peers }: NetworkMap,
  label: string,
  held: readonly PeerLabels[] = [],
): string {
  const addresses = new Map(peers.map(({ id, address }) => [id, address]));
  const lines = assignLabels(peers, held).map(({ peer, labels }) => {
    const names = labels.map((each) => `${each}.${label}.${domain}`);
    return `${addresses.get(peer)} ${names.join(' ')}`;
  });
  return [`${begins(link)} (written by cpn; edits are lost)`, ...lines, ends(link), ''].join('\n');
}

/** The lines of a block without those that mark it. */
export function linesOf(block: string): string[] {
  return block.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

/** What of a hosts file is ours; `isWhole` is false where a mark lacks its other half, so that it is unknown which lines are ours. */
export interface FoundBlock {
  /** Null when there is none; where there are several, one after the other. */
  readonly block: string | null;
  readonly isWhole: boolean;
}

/** Finds the block of an interface in the text of a hosts file. */
export function findBlock(text: string, link: string): FoundBlock {
  const { parts, isWhole } = split(text, link);
  const ours = parts.filter((part) => part.isOurs);
  return { block: ours.length === 0 ? null : ours.map((part) => part.text).join(''), isWhole };
}

/**
 * The text of a hosts file with this block, or without one; every other byte stays. Returns `text` itself, whatever was asked
 * for, where our block is not whole.
 */
export function replaceBlock(text: string, link: string, block: string | null): string {
  const { parts, isWhole } = split(text, link);
  if (!isWhole) return text;
  const first = parts.findIndex((part) => part.isOurs);
  if (first >= 0) {
    return parts.map((part, index) => (part.isOurs ? (index === first && block) || '' : part.text)).join('');
  }
  if (block === null) return text;
  // In front of a last line that does not end: a line break added to it could not be removed again later.
  return text === '' || text.endsWith('\n') ? text + block : block + text;
}

interface Part {
  readonly text: string;
  readonly isOurs: boolean;
}

function split(text: string, link: string): { parts: readonly Part[]; isWhole: boolean } {
  // A hosts file of hundreds of thousands of lines is nothing special: some block advertising with it.
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

/** Words may follow the mark, and an editor may have put a carriage return there. */
function isMark(line: string, mark: string): boolean {
  return line.startsWith(mark) && /^\s/.test(`${line.slice(mark.length)}\n`);
}
