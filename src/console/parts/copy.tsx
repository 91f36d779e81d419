import type { JSX } from 'preact';
import { useId, useRef, useState } from 'preact/hooks';
import { encode } from 'uqr';
import { codeBorder, findModulePixels } from '../logic/peers/phone-config.ts';

interface CopyProps {
  /** The kind of text, in one word. */
  readonly what?: 'command' | 'file' | 'token' | 'secret' | 'list';
  readonly label: string;
  readonly text: string;
}

/** A text to copy, such as a command or a secret that is shown only once. */
export function Copy({ what = 'command', label, text }: CopyProps): JSX.Element {
  const id = useId();
  const place = useRef<HTMLElement>(null);
  const [result, setResult] = useState('');
  const copy = async () => {
    const isCopied = await copyText(text, place.current);
    setResult(isCopied ? `The ${what} is copied.` : `The ${what} is selected. Press Ctrl+C to copy it.`);
  };
  return (
    <div class="copy">
      <p id={id}>{label}</p>
      <pre>
        <code ref={place}>{text}</code>
      </pre>
      <button type="button" onClick={() => void copy()} aria-describedby={id}>
        Copy
      </button>{' '}
      <span role="status">{result}</span>
    </div>
  );
}

/** Copies a text. Over plain http browsers have no clipboard, so the text is selected instead. */
async function copyText(text: string, place: HTMLElement | null): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    if (place !== null) getSelection()?.selectAllChildren(place);
    return false;
  }
}

/** Dark on white in every theme and never scaled down, as cameras need it. The text must fit. */
export function QrCode({ label, text }: { readonly label: string; readonly text: string }): JSX.Element {
  const { data, size } = encode(text, { border: codeBorder });
  const path = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ''))).join('');
  const width = size * findModulePixels(size - 2 * codeBorder);
  return (
    <div class="qr">
      <svg
        viewBox={`0 0 ${size} ${size}`}
        width={width}
        height={width}
        role="img"
        aria-label={label}
        shape-rendering="crispEdges"
      >
        <rect width={size} height={size} fill="#fff" />
        <path d={path} fill="#000" />
      </svg>
    </div>
  );
}
