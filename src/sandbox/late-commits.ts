import type { Table } from './table.ts';

/** A version of a record on its way to be seen. */
export interface Commit {
  readonly table: Table;
  readonly id: number;
  /** The record's JSON text as it is served; undefined when it is deleted. */
  readonly text: string | undefined;
  /** Epoch ms. */
  readonly updatedAt: number;
  /** Epoch ms. */
  readonly visibleAt: number;
}

/** Commits that can't be seen yet. */
export class LateCommits {
  /** Oldest first. */
  readonly #waiting: Commit[] = [];
  readonly #newest = new Map<string, Commit>();

  add(commit: Commit): void {
    this.#waiting.push(commit);
    this.#newest.set(nameOf(commit.table, commit.id), commit);
  }

  /** The last one of a record, if one waits. */
  newest(table: Table, id: number): Commit | undefined {
    return this.#newest.get(nameOf(table, id));
  }

  /** Takes out those that are due, oldest first. @param now epoch ms. */
  take(now: number): Commit[] {
    const due = this.#waiting.findIndex(({ visibleAt }) => visibleAt > now);
    const commits = this.#waiting.splice(0, due < 0 ? this.#waiting.length : due);
    for (const commit of commits) {
      const name = nameOf(commit.table, commit.id);
      if (this.#newest.get(name) === commit) this.#newest.delete(name);
    }
    return commits;
  }
}

function nameOf(table: Table, id: number): string {
  return `${table.resource}/${id}`;
}
