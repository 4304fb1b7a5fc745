import { setTimeout as sleep } from 'node:timers/promises';
import { Chance } from '../chance.ts';
import type { ServedList } from './api-server.ts';

export interface WriterOptions {
  /** Writes a second. */
  readonly rate: number;
  readonly seed: number;
  /** Number of records around which inserts and deletions keep the list. */
  readonly records: number;
}

/** Inserts, changes and deletes records of one list at a rate; the same seed chooses the same writes. */
export class Writer {
  readonly counts = { inserted: 0, changed: 0, deleted: 0 };
  /** When the deletion of a record was requested, by key, in epoch ms. */
  readonly deletedAt = new Map<string, number>();
  /** Keys of all records that there have been. */
  readonly inserted = new Set<string>();
  readonly #list: ServedList;
  readonly #options: WriterOptions;
  readonly #chance: Chance;
  readonly #keys: string[] = [];
  readonly #stop = new AbortController();
  #number = 0;
  #writing: Promise<void> | undefined;

  constructor(list: ServedList, options: WriterOptions) {
    this.#list = list;
    this.#options = options;
    this.#chance = new Chance(options.seed, list.name);
  }

  get name(): string {
    return this.#list.name;
  }

  get keys(): readonly string[] {
    return this.#keys;
  }

  async fill(): Promise<void> {
    while (this.#keys.length < this.#options.records) await this.#insert();
  }

  /** Writes until {@link stop}. */
  start(): void {
    this.#writing = this.#write();
    this.#writing.catch(() => undefined); // reported by `stop`
  }

  /** Resolves when the last write is done. Rejects if a write failed. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#writing;
  }

  truth(): ReturnType<ServedList['truth']> {
    return this.#list.truth();
  }

  async remove(key: string): Promise<void> {
    this.#keys.splice(this.#keys.indexOf(key), 1);
    this.deletedAt.set(key, Date.now());
    await this.#list.remove(key);
    this.counts.deleted += 1;
  }

  async #write(): Promise<void> {
    const { rate, records } = this.#options;
    const began = performance.now();
    for (let done = 0; !this.#stop.signal.aborted; done += 1) {
      const drawn = this.#chance.next();
      const isFew = this.#keys.length < records;
      if (this.#keys.length === 0 || drawn < (isFew ? 0.3 : 0.15)) await this.#insert();
      else if (drawn < 0.45) await this.remove(this.#chance.pick(this.#keys));
      else await this.#change();
      const aheadMs = began + (done * 1_000) / rate - performance.now();
      await sleep(Math.max(0, aheadMs), undefined, { signal: this.#stop.signal }).catch(() => {
        // stopped
      });
    }
  }

  async #insert(): Promise<void> {
    const key = await this.#list.insert((this.#number += 1), this.#chance);
    this.inserted.add(key);
    this.#keys.push(key);
    this.counts.inserted += 1;
  }

  async #change(): Promise<void> {
    await this.#list.change(this.#chance.pick(this.#keys), (this.#number += 1));
    this.counts.changed += 1;
  }
}
