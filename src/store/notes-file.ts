import { replaceFile, setTime } from './atomic-file.ts';
import { formatNotes, isFileTime, type Notes, noNotes, parseNotes } from './notes.ts';
import { withRegular } from './regular-file.ts';

/** The notes in a file; none when it is missing, damaged or out of reach. */
export async function readNotesFile(path: string): Promise<Notes> {
  try {
    const { text, modified } = await readTimed(path);
    return parseNotes(text, modified);
  } catch {
    return noNotes;
  }
}

/**
 * Makes a file hold these notes: writes nothing when it does, and where only the time of the last success differs nothing
 * but the file's own time. Not to survive a power cut.
 *
 * @throws DiskFailed
 */
export async function writeNotesFile(path: string, notes: Notes): Promise<void> {
  const text = formatNotes(notes);
  const there = await readTimed(path).catch(() => null);
  if (there === null && text === formatNotes(noNotes)) return;
  const modified = isFileTime(notes.sync) ? new Date(notes.sync.lastSuccess ?? 0) : null;
  if (there?.text !== text) return replaceFile(path, text, { durable: false, modified });
  if (modified !== null && modified.getTime() !== there.modified.getTime()) await setTime(path, modified);
}

async function readTimed(path: string): Promise<{ text: string; modified: Date }> {
  return withRegular(path, async (file, { mtime }) => ({ text: await file.readFile('utf8'), modified: mtime }));
}
