import { maskTokens } from '../crypto/secret.ts';

/** The difference of a section of a wg-quick file, without secrets. */
export interface SectionDiff {
  /** The public key of a `[Peer]`. Null for all other lines. */
  readonly peer: string | null;
  readonly removed: readonly string[];
  readonly added: readonly string[];
}

/** The lines that differ, by section. Masks secrets, even in malformed lines. */
export function diffConfig(before: string, after: string): SectionDiff[] {
  const [old, wanted] = [sectionsOf(before), sectionsOf(after)];
  return [...new Set([...old.keys(), ...wanted.keys()])].flatMap((peer) => {
    const [was, is] = [old.get(peer) ?? [], wanted.get(peer) ?? []];
    const diff = { peer, removed: missingIn(is, was).map(mask), added: missingIn(was, is).map(mask) };
    return diff.removed.length + diff.added.length === 0 ? [] : [diff];
  });
}

function sectionsOf(text: string): Map<string | null, string[]> {
  const sections = new Map<string | null, string[]>();
  for (const section of text.split(/^(?=\s*\[)/m)) {
    const lines = section.split('\n').map((line) => line.trim());
    const peer = /^\s*PublicKey\s*=\s*(\S+)/im.exec(section)?.[1] ?? null;
    sections.set(peer, [...(sections.get(peer) ?? []), ...lines.filter((line) => line !== '')]);
  }
  return sections;
}

function missingIn(other: readonly string[], lines: readonly string[]): string[] {
  const present = new Set(other);
  return lines.filter((line) => !present.has(line));
}

/** A key may occur in a comment or a command too, so only the line of a public key shows one. */
function mask(line: string): string {
  if (/^PublicKey\s*=\s*[A-Za-z0-9+/]{43}=$/i.test(line)) return line;
  const named = line.replace(/((?:private|preshared)key\s*=?).*/i, '$1 [secret]');
  return maskTokens(named.replace(/[A-Za-z0-9+/]{40,}=*/g, '[secret]'));
}
