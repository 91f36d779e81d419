import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

interface DownloadProps {
  readonly name: string;
  readonly text: string;
}

/** A link that saves a text as a file. The text never leaves the browser. */
export function Download({ name, text }: DownloadProps): JSX.Element | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([text], { type: 'application/octet-stream' }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [text]);
  if (url === null) return null;
  return (
    <a download={name} href={url}>
      Download {name}
    </a>
  );
}

export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser has read it by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
