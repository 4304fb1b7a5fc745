import type { Answer } from './api.ts';

/** Pages that are kept at most; the oldest goes first. */
const MAX_PAGES = 1_000;

interface KeptPage {
  readonly answer: Answer;
  /** Epoch ms by the server's clock. */
  readonly at: number;
}

/** A cache in front of one account's lists, for the fault `cached`. */
export class PageCache {
  readonly #pages = new Map<string, KeptPage>();

  /** The page that was kept under this name less than `ms` ago, with the headers of a cache. @param now epoch ms. */
  find(name: string, now: number, ms: number, sendsAge: boolean): Answer | undefined {
    const page = this.#pages.get(name);
    if (!page || now - page.at >= ms) return undefined;
    const { answer, at } = page;
    const age = sendsAge && { age: String(Math.floor((now - at) / 1_000)) };
    return { ...answer, headers: { ...answer.headers, ...age, date: new Date(at).toUTCString() } };
  }

  keep(name: string, answer: Answer, now: number): void {
    this.#pages.delete(name);
    this.#pages.set(name, { answer, at: now });
    if (this.#pages.size <= MAX_PAGES) return;
    const [oldest] = this.#pages.keys();
    this.#pages.delete(oldest!);
  }
}
