import { describeBytes, dim } from '../output/output.ts';

/** How often it speaks, in milliseconds: what is over sooner says nothing. */
const every = { terminal: 200, elsewhere: 5_000 };

/** Counts bytes and reports them on stderr: in one line that is redrawn on a terminal, in lines elsewhere. */
export interface TransferMeter {
  add(bytes: number): void;
  /** Leaves the terminal's line as it was. */
  end(): void;
}

interface Stream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** @param total null where it is unknown */
export function transferMeter(
  what: string,
  total: number | null,
  stream: Stream = process.stderr,
  clock = () => performance.now(),
): TransferMeter {
  const inPlace = stream.isTTY === true;
  const pause = inPlace ? every.terminal : every.elsewhere;
  let done = 0;
  let spokeAt = clock();
  let spoke = false;
  return {
    add(bytes) {
      done += bytes;
      if (clock() - spokeAt < pause) return;
      spokeAt = clock();
      spoke = true;
      const of = total === null ? '' : ` of ${describeBytes(total)}`;
      const line = dim(`· ${what} ${describeBytes(done)}${of}`);
      stream.write(inPlace ? `\r${line}${clearRest}` : `${line}\n`);
    },
    end() {
      if (inPlace && spoke) stream.write(`\r${clearRest}`);
    },
  };
}

/** ECMA-48's EL: whatever stood further right on the line goes. */
const clearRest = '\x1b[K';
