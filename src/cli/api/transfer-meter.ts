import { describeBytes, dim } from '../output/output.ts';

/** Milliseconds between reports. A shorter transfer reports nothing. */
const every = { terminal: 200, elsewhere: 5_000 };

/** Reports transferred bytes on stderr. Redraws one line on a terminal, prints lines elsewhere. */
export interface TransferMeter {
  add(bytes: number): void;
  /** Clears its line on the terminal. */
  end(): void;
}

interface Stream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** @param total null if it is unknown */
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

/** EL of ECMA-48: clears the rest of the line. */
const clearRest = '\x1b[K';
