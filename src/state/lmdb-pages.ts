import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/**
 * lmdb's file as version 3 of the package `lmdb` writes it: 64 bits, little endian; each page begins
 * with its own number. lmdb maps it into memory and believes it: a page that is cut off, or a number
 * that points anywhere, ends the process by SIGBUS or SIGSEGV, and nothing can catch that.
 */
const MAGIC = 0xbeefc0de;
const DATA_VERSION = 2;
const HEADER = 24;
const FLAGS = { branch: 1, leaf: 2, overflow: 4, meta: 8 } as const;
const NODE = 8;
const NODE_FLAGS = { overflow: 1, tree: 2 } as const;
const TREE_BYTES = 48;
const NO_PAGE = 2n ** 64n - 1n;
const MAX_DEPTH = 32;
const META_PAGES = 2;

interface Tree {
  readonly depth: number;
  readonly entries: number;
  readonly root: bigint;
}

interface Meta {
  readonly pageSize: number;
  readonly lastPage: number;
  readonly transaction: bigint;
  /** Which pages nobody uses. */
  readonly free: Tree;
  /** The named trees. */
  readonly main: Tree;
}

/** What is wrong, in words. */
class Damage extends Error {}

/** Pages of which transactions are looked at: all of them, those that are later, or none. */
export type Looked = 'all' | { readonly since: bigint } | 'none';

/**
 * Looks whether lmdb can work with a file, without lmdb: nothing in it can end this process. Always
 * whether it is as long as it says. `all` follows every page that is in use, which takes two to four
 * seconds for a million images; `since` those that later transactions have written: with a page all those above it
 * are written anew, in new places.
 *
 * What is found out: pages that are missing, are not what they should be, or are used twice; keys out
 * of order. Not: what the values hold.
 *
 * @returns what is wrong; undefined when nothing is, and for a file that is empty or not there.
 */
export function damageIn(file: string, looked: Looked): string | undefined {
  let fd: number;
  try {
    fd = openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const { size } = fstatSync(fd);
    if (size === 0) return undefined; // lmdb begins a new one
    const meta = newestMeta(fd);
    // The last pages may be free ones that were never written: then it is shorter, and all is well.
    const isShort = size < (meta.lastPage + 1) * meta.pageSize;
    if (isShort || looked !== 'none') {
      const since = typeof looked === 'object' && !isShort ? looked.since : 0n;
      // A file that was put back is older than what is said of it.
      new Walk(fd, meta, since > meta.transaction ? 0n : since).all();
    }
    return undefined;
  } catch (error) {
    if (error instanceof Damage) return error.message;
    // A length or place that lies outside of its page.
    if (error instanceof RangeError) return 'a page holds what can not be';
    throw error;
  } finally {
    closeSync(fd);
  }
}

/** The newest transaction of a file; 0 where it has none, or can't be read. */
export function newestTransaction(file: string): bigint {
  let fd: number | undefined;
  try {
    fd = openSync(file, 'r');
    return newestMeta(fd).transaction;
  } catch {
    return 0n; // what is wrong with it is found out by who opens it
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function newestMeta(fd: number): Meta {
  const first = metaAt(fd, 0);
  const second = metaAt(fd, first.pageSize);
  if (first.pageSize !== second.pageSize) throw new Damage('its page sizes differ');
  return first.transaction >= second.transaction ? first : second;
}

function metaAt(fd: number, at: number): Meta {
  const page = Buffer.alloc(HEADER + 144);
  if (readSync(fd, page, 0, page.length, at) < page.length) throw new Damage('it is cut off');
  const body = page.subarray(HEADER);
  const isMeta = (page.readUInt16LE(18) & FLAGS.meta) !== 0;
  if (!isMeta || body.readUInt32LE(0) !== MAGIC) throw new Damage('it is no lmdb file');
  const version = body.readUInt32LE(4) & 0xffff;
  if (version !== DATA_VERSION) throw new Damage(`it has lmdb's format ${version}`);
  const pageSize = body.readUInt32LE(24);
  if (pageSize < 512 || pageSize > 65_536 || (pageSize & (pageSize - 1)) !== 0)
    throw new Damage(`its page size is ${pageSize}`);
  const lastPage = Number(body.readBigUInt64LE(120));
  if (lastPage < META_PAGES - 1 || lastPage > 2 ** 40)
    throw new Damage(`its last page is ${lastPage}`);
  return {
    pageSize,
    lastPage,
    transaction: body.readBigUInt64LE(128),
    free: treeIn(body, 24),
    main: treeIn(body, 72),
  };
}

function treeIn(bytes: Buffer, at: number): Tree {
  return {
    depth: bytes.readUInt16LE(at + 6),
    entries: Number(bytes.readBigUInt64LE(at + 32)),
    root: bytes.readBigUInt64LE(at + 40),
  };
}

/** What a tree does with the entries of its leaves. */
type OnEntry = (value: Entry) => void;

interface Entry {
  readonly bytes: Buffer;
  readonly isTree: boolean;
}

/** Keys of a part of a tree: from `low` on, and below `high`. */
interface Bounds {
  readonly low: Buffer | undefined;
  readonly high: Buffer | undefined;
}

/** A page with entries, and what is to be done with them. */
interface Leaf {
  readonly number: number;
  readonly bounds: Bounds;
  readonly kind: Kind;
  readonly onEntry: OnEntry;
}

type Kind = 'main' | 'named' | 'free';

/**
 * Leaves are read in the order in which they lie in the file, as many as may wait: one after the other in the order of
 * their keys takes ten times as long, even out of the system's memory.
 */
const MAX_LEAVES = 200_000;
/** Of what is read at one go; and how many pages that nobody asked for may lie between two of it. */
const MAX_BYTES = 2 ** 20;
const MAX_GAP = 16;

class Walk {
  readonly #fd: number;
  readonly #meta: Meta;
  readonly #size: number;
  readonly #since: bigint;
  readonly #buffer = Buffer.alloc(MAX_BYTES);
  #leaves: Leaf[] = [];
  /** A bit a page: already in use, or free. */
  readonly #known: Uint8Array;

  constructor(fd: number, meta: Meta, since: bigint) {
    this.#fd = fd;
    this.#meta = meta;
    this.#since = since;
    this.#size = fstatSync(fd).size;
    const pages = meta.lastPage + 1;
    // More than a few of them can't be behind the file's end.
    if (pages > 2 * (this.#size / meta.pageSize) + 1_000_000) throw new Damage('it is cut off');
    this.#known = new Uint8Array((pages >> 3) + 1);
  }

  all(): void {
    const { free, main } = this.#meta;
    const named: Tree[] = [];
    const freed: Buffer[] = [];
    this.#tree(main, 'main', ({ isTree, bytes }) => void (isTree && named.push(treeIn(bytes, 0))));
    for (const tree of named) this.#tree(tree, 'named', () => undefined);
    this.#tree(free, 'free', ({ bytes }) => void freed.push(Buffer.from(bytes)));
    for (const list of freed) this.#freed(list);
  }

  #tree({ root, depth, entries }: Tree, kind: Kind, onEntry: OnEntry): void {
    if (root === NO_PAGE) {
      if (entries !== 0) throw new Damage('a tree without pages has entries');
      return;
    }
    if (depth < 1 || depth > MAX_DEPTH) throw new Damage(`a tree is ${depth} pages deep`);
    let count = 0;
    const everywhere = { low: undefined, high: undefined };
    this.#page(Number(root), depth, everywhere, kind, (entry) => {
      count += 1;
      onEntry(entry);
    });
    this.#readLeaves();
    if (this.#since === 0n && count !== entries)
      throw new Damage(`a tree of ${entries} entries has ${count}`);
  }

  #page(number: number, depth: number, bounds: Bounds, kind: Kind, onEntry: OnEntry): void {
    if (depth === 1) {
      this.#expectPlace(number); // before it is reckoned with
      this.#leaves.push({ number, bounds, kind, onEntry });
      if (this.#leaves.length === MAX_LEAVES) this.#readLeaves();
      return;
    }
    const page = this.#read(number, 1);
    if (this.#isOld(page)) return;
    const nodes = this.#nodes(page, number, FLAGS.branch);
    if (nodes.length === 1 && kind !== 'free') throw wrong(number, 'count');
    const keys = this.#keys(page, nodes, { number, bounds, kind });
    for (const [nth, node] of nodes.entries()) {
      const below = { low: keys[nth], high: keys[nth + 1] ?? bounds.high };
      this.#page(childOf(page, node), depth - 1, below, kind, onEntry);
    }
  }

  #readLeaves(): void {
    const { pageSize } = this.#meta;
    const leaves = this.#leaves;
    this.#leaves = [];
    // Places and numbers as one: to order numbers takes a tenth of the time.
    const order = Float64Array.from(leaves, ({ number }, nth) => number * MAX_LEAVES + nth).sort();
    let stretch: Leaf[] = [];
    const end = () => {
      const [first] = stretch;
      if (!first) return;
      const pages = stretch.at(-1)!.number + 1 - first.number;
      const bytes = this.#buffer.subarray(0, pages * pageSize);
      readSync(this.#fd, bytes, 0, bytes.length, first.number * pageSize);
      for (const leaf of stretch) {
        const at = (leaf.number - first.number) * pageSize;
        this.#leaf(bytes.subarray(at, at + pageSize), leaf);
      }
      stretch = [];
    };
    for (const place of order) {
      const leaf = leaves[place % MAX_LEAVES]!;
      this.#know(leaf.number);
      this.#expectThere(leaf.number, 1);
      const { number: first } = stretch[0] ?? leaf;
      const { number: last } = stretch.at(-1) ?? leaf;
      const isFar = leaf.number - last > MAX_GAP;
      if (isFar || (leaf.number + 1 - first) * pageSize > MAX_BYTES) end();
      stretch.push(leaf);
    }
    end();
  }

  #leaf(page: Buffer, leaf: Leaf): void {
    this.#expectOwn(page, leaf.number);
    if (this.#isOld(page)) return;
    const nodes = this.#nodes(page, leaf.number, FLAGS.leaf);
    this.#keys(page, nodes, leaf);
    for (const node of nodes) leaf.onEntry(this.#entry(page, node, leaf.number));
  }

  /** Where a page's nodes are. */
  #nodes(page: Buffer, number: number, kind: number): number[] {
    const [flags, lower, upper] = [
      page.readUInt16LE(18),
      page.readUInt16LE(20),
      page.readUInt16LE(22),
    ];
    const room = this.#meta.pageSize - HEADER;
    if (flags !== kind) throw wrong(number, 'kind');
    if (lower > upper || upper > room || lower % 2 !== 0) throw wrong(number, 'bounds');
    if (lower === 0) throw wrong(number, 'count');
    const nodes: number[] = [];
    for (let at = HEADER; at < HEADER + lower; at += 2) {
      const node = page.readUInt16LE(at);
      if (node < upper || node + NODE > room) throw wrong(number, 'entries');
      nodes.push(node);
    }
    return nodes;
  }

  /** The keys of a page's nodes, which rise, and lie within its bounds. */
  #keys(page: Buffer, nodes: readonly number[], about: Omit<Leaf, 'onEntry'>) {
    const { number, bounds, kind } = about;
    const isLeaf = page.readUInt16LE(18) === FLAGS.leaf;
    let before: Buffer | undefined;
    const keys = nodes.map((node, nth) => {
      const from = HEADER + node + NODE;
      const to = from + sizeOf(page, node, 6);
      if (to > page.length) throw wrong(number, 'keys');
      const key = page.subarray(from, to);
      // The first key of a branch stands for everything below the second.
      if (!isLeaf && nth === 0) return bounds.low;
      if (kind === 'free' ? key.length !== 8 : key.length === 0) throw wrong(number, 'keys');
      const low = before ?? bounds.low;
      const isBeside = before === undefined && isLeaf;
      const order = low ? compare(kind, low, key) : -1;
      if (order > 0 || (order === 0 && !isBeside)) throw wrong(number, 'order');
      return (before = key);
    });
    const last = before ?? bounds.low;
    if (last && bounds.high && compare(kind, last, bounds.high) >= 0) throw wrong(number, 'order');
    return keys;
  }

  #entry(page: Buffer, node: number, number: number): Entry {
    const at = HEADER + node;
    const size = page.readUInt32LE(at);
    const flags = sizeOf(page, node, 4);
    const from = at + NODE + sizeOf(page, node, 6);
    const isTree = flags === NODE_FLAGS.tree;
    if (flags === NODE_FLAGS.overflow) {
      const first = Number(page.readBigUInt64LE(from));
      const pages = Math.floor((HEADER - 1 + size) / this.#meta.pageSize) + 1;
      const bytes = this.#read(first, pages);
      const isOverflow = bytes.readUInt16LE(18) === FLAGS.overflow;
      if (!isOverflow || bytes.readUInt32LE(20) < pages) throw wrong(first, 'kind');
      for (let more = pages; more < bytes.readUInt32LE(20); more++) this.#know(first + more);
      return { bytes: bytes.subarray(HEADER, HEADER + size), isTree: false };
    }
    if (flags !== 0 && !isTree) throw wrong(number, 'entries');
    if (from + size > page.length || (isTree && size !== TREE_BYTES))
      throw wrong(number, 'entries');
    return { bytes: page.subarray(from, from + size), isTree };
  }

  /** A list of free pages: its length, then numbers; a negative one is so many pages from the next. */
  #freed(list: Buffer): void {
    const count = Number(list.readBigInt64LE(0));
    for (let nth = 1; nth <= count; nth++) {
      const number = Number(list.readBigInt64LE(8 * nth));
      if (number > 0) this.#know(number);
      if (number >= 0) continue;
      nth += 1;
      const first = Number(list.readBigInt64LE(8 * nth));
      if (-number > this.#meta.lastPage) throw wrong(first, 'place');
      for (let page = first; page < first - number; page++) this.#know(page);
    }
  }

  /** Each page is used for one thing, or free. */
  #know(number: number): void {
    this.#expectPlace(number);
    const bit = 1 << (number & 7);
    const at = number >> 3;
    if ((this.#known[at]! & bit) !== 0) throw new Damage(`page ${number} is used twice`);
    this.#known[at]! |= bit;
  }

  #read(number: number, pages: number): Buffer {
    const { pageSize } = this.#meta;
    for (let page = number; page < number + pages; page++) this.#know(page);
    this.#expectThere(number, pages);
    const bytes = Buffer.allocUnsafe(pages * pageSize);
    readSync(this.#fd, bytes, 0, bytes.length, number * pageSize);
    this.#expectOwn(bytes, number);
    return bytes;
  }

  #expectPlace(number: number): void {
    if (!(number >= META_PAGES && number <= this.#meta.lastPage)) throw wrong(number, 'place');
  }

  #expectThere(number: number, pages: number): void {
    if ((number + pages) * this.#meta.pageSize > this.#size) throw new Damage('it is cut off');
  }

  #isOld(page: Buffer): boolean {
    return page.readBigUInt64LE(8) <= this.#since;
  }

  #expectOwn(bytes: Buffer, number: number): void {
    if (Number(bytes.readBigUInt64LE(0)) !== number) throw wrong(number, 'number');
    // A page of a later transaction would be one that lmdb may write to, in a map that it can't.
    if (bytes.readBigUInt64LE(8) > this.#meta.transaction) throw wrong(number, 'transaction');
  }
}

function wrong(page: number, what: string): Damage {
  return new Damage(`the ${what} of page ${page} can not be`);
}

/** A field of two bytes of a node. */
function sizeOf(page: Buffer, node: number, at: 4 | 6): number {
  return page.readUInt16LE(HEADER + node + at);
}

function childOf(page: Buffer, node: number): number {
  const at = HEADER + node;
  return page.readUInt32LE(at) + page.readUInt16LE(at + 4) * 2 ** 32;
}

/** Keys of free pages are numbers of transactions; all others are ordered by their bytes. */
function compare(kind: string, one: Buffer, other: Buffer): number {
  if (kind !== 'free') return one.compare(other);
  const [a, b] = [one.readBigUInt64LE(0), other.readBigUInt64LE(0)];
  return a < b ? -1 : a > b ? 1 : 0;
}
