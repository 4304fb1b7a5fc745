import { readFileSync } from 'node:fs';
import { endOfValue } from '../../json/json-bytes.ts';
import {
  NOTE_DEPTH,
  NOTE_STEPS,
  NOTES,
  OUT,
  PADDING,
  PROGRAM,
  RESULT,
  RESULT_NOTES,
  RESULT_OUT,
  WINDOW,
  WINDOW_BYTES,
} from './layout.ts';
import type { Program } from './program.ts';

/** As much as is used of it: the types of Node have none. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

/** What `wasm/transcode.ts` exports. */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly transcode: (start: number, record: number) => number;
}

/** A record that begins so near to the end of what is in the window may not be in it whole. */
const NEAR_BYTES = 16_384;
const NOWHERE = -1;

/** What `wasm/transcode.ts` works on: a schema, a stretch of a page, and what came of it. */
class TranscoderMemory {
  readonly #transcode: Exports['transcode'];
  readonly #bytes: Uint8Array;
  readonly #integers: Int32Array;
  #program: Program | undefined;
  /** Weak: it may be of many megabytes, and be the last one for long. */
  #page: WeakRef<Buffer> | undefined;
  /** The place in the page of the first byte in the window, and of the one behind the last. */
  #from = 0;
  #to = 0;

  constructor() {
    const module = new WebAssembly.Module(
      readFileSync(new URL('transcoder.wasm', import.meta.url)),
    );
    const { transcode, memory } = new WebAssembly.Instance(module).exports as Exports;
    this.#transcode = transcode;
    this.#bytes = new Uint8Array(memory.buffer);
    this.#integers = new Int32Array(memory.buffer);
  }

  /**
   * Reads the object that begins at a place of a page.
   *
   * @returns the place behind it; -1 where it can't be read so.
   */
  transcode(program: Program, page: Buffer, at: number): number {
    if (this.#program !== program) {
      this.#bytes.set(program.bytes, PROGRAM);
      this.#program = program;
    }
    const isIn = this.#page?.deref() === page && at >= this.#from && at < this.#to;
    const isNear = this.#to < page.length && at + NEAR_BYTES > this.#to;
    if (!isIn || isNear) this.#load(page, at);
    let end = this.#transcode(at - this.#from + WINDOW, program.root);
    if (end === 0 && this.#from < at && endOfValue(page, at) > this.#to) {
      this.#load(page, at); // it was not in the window whole
      end = this.#transcode(WINDOW, program.root);
    }
    return end === 0 ? NOWHERE : this.placeOf(end);
  }

  #load(page: Buffer, at: number): void {
    const size = Math.min(WINDOW_BYTES, page.length - at);
    this.#bytes.set(page.subarray(at, at + size), WINDOW);
    this.#bytes.fill(0, WINDOW + size, WINDOW + size + PADDING);
    this.#page = new WeakRef(page);
    this.#from = at;
    this.#to = at + size;
  }

  integer(at: number): number {
    return this.#integers[at >> 2]!;
  }

  /** The place in the page of what is in the window. */
  placeOf(at: number): number {
    return at - WINDOW + this.#from;
  }

  /** Bytes that were written. */
  get size(): number {
    return this.integer(RESULT + RESULT_OUT);
  }

  /** A stretch of them, as long as nothing else is read. */
  written(from: number, to: number): Uint8Array {
    return this.#bytes.subarray(OUT + from, OUT + to);
  }

  /** Tells where each note stands. */
  eachNote(tell: (note: number) => void): void {
    const end = NOTES + this.integer(RESULT + RESULT_NOTES);
    for (let note = NOTES; note < end;) {
      tell(note);
      note += NOTE_STEPS + this.integer(note + NOTE_DEPTH) * Int32Array.BYTES_PER_ELEMENT;
    }
  }
}

let made: TranscoderMemory | undefined;

/**
 * One for the process, as V8 sets a range of gigabytes of addresses aside for each. It is made when the first record is read:
 * nobody else needs it. What is in it between two calls is a cache.
 */
export const transcoderMemory = (): TranscoderMemory => (made ??= new TranscoderMemory());
