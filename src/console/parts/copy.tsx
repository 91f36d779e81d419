import type { JSX } from 'preact';
import { useId, useRef, useState } from 'preact/hooks';

interface CopyProps {
  /** The kind of text, in one word. */
  readonly what?: 'command' | 'file' | 'token';
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
