/** Turns an API message, which is in lower case and has no full stop, into a sentence. */
export function toSentence(message: string): string {
  const [first = '', ...rest] = message;
  const text = first.toUpperCase() + rest.join('');
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
