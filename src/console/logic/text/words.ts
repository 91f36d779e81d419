/** The values of a list field, such as routes, separated by spaces, commas or lines. */
export function splitWords(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}

/** The consequences of deleting a network. */
export function describeLoss(peers: number): string {
  if (peers === 0) return 'It has no peers.';
  return peers === 1 ? 'Its peer loses the network.' : `All ${peers} peers lose the network and each other.`;
}
