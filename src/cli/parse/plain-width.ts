import { stripVTControlCharacters } from 'node:util';

/**
 * How many columns a text takes, for yargs and what it brings, in whose place of string-width the build puts it: help is written in
 * ASCII, and string-width's expression for emoji takes 25 ms of every start.
 */
export default function plainWidth(text: string): number {
  return text.includes('\u001b') ? stripVTControlCharacters(text).length : text.length;
}
