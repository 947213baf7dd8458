class Node {
  children = new Map<string, Node>();
  ends = false;
}

export class Trie {
  private root = new Node();

  insert(word: string): void {
    let node = this.root;
    for (const letter of word) {
      if (!node.children.has(letter)) {
        node.children.set(letter, new Node());
      }
      node = node.children.get(letter)!;
    }
    node.ends = true;
  }

  search(word: string): boolean {
    let node: Node | undefined = this.root;
    for (const letter of word) {
      node = node.children.get(letter);
      if (!node) return false;
    }
    return node.ends;
  }
}
