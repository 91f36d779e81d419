/** A search compares each entry with each of its words. */
export const mostSearchWords = 5;

/** The distinct words of a search in lower case. */
export const searchWords = (search: string): string[] => [
  ...new Set(search.toLowerCase().split(/\s+/).filter(Boolean)),
];
