import type { Observable } from 'rxjs';
import type { CellarstreamError } from '../../core/errors.ts';
import { textOfAnyBytes } from '../../schemas/json/json-bytes.ts';
import { recordsOf } from './answer.ts';
import type { Answer } from './answer.ts';
import type { ListQuery } from '../http/list-query.ts';

/** A page with a record that is no JSON, of which nobody can say where it ends. */
export interface BrokenPage {
  readonly broken: {
    /** Of the record in the page: those before it are right. */
    readonly place: number;
    /** From its first byte to the end of the page. */
    readonly rest: Buffer;
  };
}

/** An answer that is such a page. */
export type BrokenAnswer = Omit<Answer, 'data' | 'records' | 'pagination' | 'notFound'> &
  BrokenPage;

export const isBroken = (answer: Answer | BrokenAnswer): answer is BrokenAnswer =>
  'broken' in answer;

/** The text of the record that is no JSON with which an answer begins; undefined where it is JSON. */
export function unreadIn(answer: Answer | BrokenAnswer): string | undefined {
  if (isBroken(answer)) return textOfAnyBytes(answer.broken.rest);
  const first = recordsOf(answer).at(0);
  return first?.unreadableAt === undefined ? undefined : (first.json as string);
}

/** How to ask about a page that is broken, and what to say when that leads nowhere. */
export interface Inquiry {
  readonly offset: number;
  readonly pageSize: number;
  readonly ask: (part: Part) => Observable<Answer | BrokenAnswer>;
  /** The same of a part that must not be broken. */
  readonly whole: (part: Part) => Observable<Answer>;
  readonly failed: () => CellarstreamError;
}

export type Part = Required<Pick<ListQuery, 'offset' | 'pageSize'>>;
