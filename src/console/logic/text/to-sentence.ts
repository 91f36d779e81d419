/** A message of the API, which begins in lower case and has no full stop, as a sentence. */
export function toSentence(message: string): string {
  const [first = '', ...rest] = message;
  const text = first.toUpperCase() + rest.join('');
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
