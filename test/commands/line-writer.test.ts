import { Writable } from 'node:stream';
import { expect, it, vi } from 'vitest';
import { LineWriter } from '../../src/commands/line-writer.ts';

/** A stream whose writes are done when they are told to be. */
function slowStream() {
  const chunks: string[] = [];
  const underWay: ((error?: Error) => void)[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write: (chunk: string, _, done) => {
      chunks.push(chunk);
      underWay.push(done);
    },
  });
  stream.on('error', () => undefined);
  return { stream, chunks, underWay };
}

it('flush waits for a write that is under way, too', async () => {
  const { stream, chunks, underWay } = slowStream();
  const lines = new LineWriter(stream);
  void lines.write('a');
  await vi.waitUntil(() => underWay.length === 1); // by itself
  let isFlushed = false;
  const flushed = lines.flush().then(() => (isFlushed = true));
  await new Promise(setImmediate);
  expect(isFlushed).toBe(false);
  underWay[0]!();
  await flushed;
  expect(chunks).toEqual(['a\n']);
});

it('flush resolves when nobody reads any more', async () => {
  const { stream, underWay } = slowStream();
  const lines = new LineWriter(stream);
  void lines.write('a');
  const flushed = lines.flush();
  underWay[0]!(new Error('EPIPE'));
  await flushed;
  void lines.write('b');
  await lines.flush();
});
