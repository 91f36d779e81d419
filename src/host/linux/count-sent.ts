import { readFile } from 'node:fs/promises';

/** The column of sent packets in /proc/net/dev (proc_net_dev(5)), counted after the name. */
const sentPackets = 9;

/** The packets that an interface sent; null without it. */
export async function countSent(link: string): Promise<number | null> {
  return parseSent(await readFile('/proc/net/dev', 'utf8'), link);
}

export function parseSent(text: string, link: string): number | null {
  const line = text.split('\n').find((each) => each.trimStart().startsWith(`${link}:`));
  const fields =
    line
      ?.slice(line.indexOf(':') + 1)
      .trim()
      .split(/\s+/) ?? [];
  const count = Number(fields[sentPackets]);
  return Number.isSafeInteger(count) ? count : null;
}
