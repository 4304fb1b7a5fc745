import { once } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { firstValueFrom, from, Subject, toArray } from 'rxjs';
import { expect, it } from 'vitest';
import { consoleSink } from '../../src/sinks/console.ts';
import { JsonNumber } from '../../src/schemas/json/json.ts';
import type { Change } from '../../src/streams/diff/change.ts';

const updated: Change = {
  key: '100234',
  op: 'u',
  before: { order_number: 100_234, total_price: 10, email: 'ana@example.com' },
  after: { order_number: 100_234, total_price: new JsonNumber('10.000000000000000001') },
  images: { before: Buffer.from('old'), after: Buffer.from('new') },
  changed: ['email', 'total_price'],
  updatedAt: null,
};

it('writes a change as a line of JSON, numbers as they were sent', async () => {
  const stream = new PassThrough();
  const passed = await firstValueFrom(from([updated]).pipe(consoleSink({ stream }), toArray()));
  expect(passed).toEqual([updated]);
  expect(String(stream.read())).toBe(
    '{"key":"100234","op":"u","changed":["email","total_price"],' +
      '"before":{"order_number":100234,"total_price":10,"email":"ana@example.com"},' +
      '"after":{"order_number":100234,"total_price":10.000000000000000001}}\n',
  );
});

it('leaves images out where they are not wanted', async () => {
  const stream = new PassThrough();
  await firstValueFrom(from([updated]).pipe(consoleSink({ stream, images: false })));
  expect(String(stream.read())).toBe(
    '{"key":"100234","op":"u","changed":["email","total_price"]}\n',
  );
});

it('passes a change on only when the stream has taken it, one at a time', () => {
  const taking: (() => void)[] = [];
  const stream = new Writable({ write: (_chunk, _encoding, done) => void taking.push(done) });
  const changes$ = new Subject<Change>();
  const passed: string[] = [];
  changes$.pipe(consoleSink({ stream, images: false })).subscribe(({ key }) => passed.push(key));

  changes$.next({ ...updated, key: 'a' });
  changes$.next({ ...updated, key: 'b' });
  expect(passed).toEqual([]);
  const first = '{"key":"a","op":"u","changed":["email","total_price"]}\n';
  expect(stream.writableLength).toBe(first.length); // the second is not written yet
  taking[0]!();
  return expect.poll(() => passed).toEqual(['a']);
});

it('errors when the reader has gone', async () => {
  const stream = new PassThrough();
  stream.destroy();
  await once(stream, 'close');
  const passed$ = from([updated]).pipe(consoleSink({ stream }));
  await expect(firstValueFrom(passed$)).rejects.toMatchObject({ code: 'ERR_STREAM_DESTROYED' });
});

it('errors, and does not end the process, when writing fails', async () => {
  const failure = new Error('EPIPE');
  const stream = new Writable({ write: (_chunk, _encoding, done) => done(failure) });
  await expect(firstValueFrom(from([updated]).pipe(consoleSink({ stream })))).rejects.toBe(failure);
  await new Promise(setImmediate); // by now an error that nobody listens for would have been thrown
});
