/** A search compares each entry with each of its words. */
export const mostSearchWords = 5;

/** The words of a search in lower case, each once. */
export const searchWords = (search: string): string[] => [
  ...new Set(search.toLowerCase().split(/\s+/).filter(Boolean)),
];
