// @ts-check
// A full-text index of the products: made from the whole topic, kept up to date, resumed where it was.
//
//     npm run example:04         # with `npm start` in another terminal; type words, get products
//     echo merlot | npm run example:04
//
// It stands for Elasticsearch or OpenSearch, and lives in one file. The file holds the position in the topic
// beside what was indexed up to there, so the two can't come apart. Every text of a product is indexed,
// whatever its field: one that is new in the API's records is found as soon as a product has it.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Subject, auditTime, merge, tap } from 'rxjs';
import { positionAfter, replay } from 'cellarstream/consume';
import { failed, folder, kafka, registry, stop$, topics } from './connect.mjs';

/** @import { Consumed, TopicPosition } from 'cellarstream/consume' */
/** @import { ChangeEvent } from 'cellarstream/schemas' */
/** @typedef {{ version: number, position: TopicPosition, products: Record<string, { title: string, words: string[] }> }} Stored */

/** To be raised when words are found in another way: the index is then made anew, from offset zero. */
const INDEX_VERSION = 1;

const file = join(folder('search'), 'products.json');
const index = load();
/** @type {Map<string, Set<string>>} */
const productsWith = new Map();
for (const [id, { words }] of Object.entries(index.products)) enter(id, words);

/** @returns {Stored} */
function load() {
  const empty = { version: INDEX_VERSION, position: {}, products: {} };
  if (!existsSync(file)) return empty;
  const stored = /** @type {Stored} */ (JSON.parse(readFileSync(file, 'utf8')));
  return stored.version === INDEX_VERSION ? stored : empty;
}

/** Beside it and then in its place: whoever is killed leaves the old file or the new one. */
function save() {
  writeFileSync(`${file}.new`, JSON.stringify(index), { flush: true });
  renameSync(`${file}.new`, file);
}

/** @param {string} text */
const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** Of a record, at any depth. @param {unknown} value @returns {string[]} */
function textsOf(value) {
  if (typeof value === 'string') return [value];
  return value && typeof value === 'object' ? Object.values(value).flatMap(textsOf) : [];
}

/** @param {string} id @param {readonly string[]} words */
function enter(id, words) {
  for (const word of words) productsWith.set(word, (productsWith.get(word) ?? new Set()).add(id));
}

let events = 0;

/** @param {Consumed<ChangeEvent>} message a product as it is now, or that it is gone */
function apply(message) {
  const id = message.key ?? '';
  for (const word of index.products[id]?.words ?? []) productsWith.get(word)?.delete(id);
  delete index.products[id];
  const product = message.value?.after;
  if (product) {
    const words = [...new Set(textsOf(product).flatMap(wordsOf))];
    index.products[id] = { title: textsOf(product.title).join(), words };
    enter(id, words);
  }
  index.position = positionAfter(index.position, message);
  events += 1;
}

/** Those that have every word. @param {string} question */
function find(question) {
  const [first, ...others] = wordsOf(question).map((word) => productsWith.get(word) ?? new Set());
  return [...(first ?? [])].filter((id) => others.every((ids) => ids.has(id)));
}

const quit$ = new Subject();

/** Answers each line of the input; ends with it. */
function answer() {
  console.error(`${Object.keys(index.products).length} products, ${events} events read`);
  save();
  createInterface({ input: process.stdin })
    .on('line', (question) => {
      const found = find(question);
      for (const id of found.slice(0, 10)) console.log(`${id}  ${index.products[id]?.title}`);
      console.log(`${found.length} found`);
    })
    .on('close', () => quit$.next(undefined));
}

replay({
  kafka,
  registry,
  topic: topics.products,
  from: index.position,
  to: 'never',
  onCaughtUp: answer,
  stop$: merge(stop$, quit$),
})
  .pipe(tap(apply), auditTime(1_000), tap(save))
  .subscribe({ error: failed, complete: () => process.stdin.destroy() });
