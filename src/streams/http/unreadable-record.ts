import { createHash } from 'node:crypto';
import { stringifyJson } from '../../schemas/json/json.ts';

/** Whether all of a page is JSON. */
export function isReadable(data: readonly unknown[]): boolean {
  return !data.some((sent) => sent instanceof UnreadableRecord);
}

/** An element of a page that is no JSON: nothing is known of it but its text and its place. */
export class UnreadableRecord {
  /** As it was sent, or, where fields of its list are hidden, its `sha256` and `length` as JSON. */
  readonly text: string;
  /** Of the record in its list, when it was read. */
  readonly offset: number;

  constructor(text: string, offset: number) {
    this.text = text;
    this.offset = offset;
  }

  /** The same without its text: nobody can say where in it a personal field is. */
  hidden(): UnreadableRecord {
    const sha256 = createHash('sha256').update(this.text).digest('hex');
    const length = Buffer.byteLength(this.text);
    return new UnreadableRecord(stringifyJson({ sha256, length }), this.offset);
  }
}
