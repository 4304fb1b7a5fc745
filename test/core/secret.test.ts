import { format, inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../src/core/secret.ts';

/** Texts that can't be part of what is printed by chance. */
const text = fc.string({ minLength: 1 }).map((random) => `<<${random}>>`);

// In a text it is not allowed by its type: a cast does what a slip would.
const printings: [string, (secret: Secret) => string][] = [
  ['String()', (secret) => String(secret)],
  ['a template', (secret) => `${secret as unknown as string}`],
  ['concatenation', (secret) => '' + (secret as unknown as string)],
  ['JSON', (secret) => JSON.stringify({ secret, list: [secret] })],
  ['util.inspect', (secret) => inspect({ secret, map: new Map([[secret, secret]]) })],
  [
    'util.inspect with all it has',
    (secret) => inspect(secret, { customInspect: false, showHidden: true, getters: true }),
  ],
  ['util.format', (secret) => format('%s %o %O %j %d', secret, secret, secret, secret, secret)],
  ['an error', (secret) => inspect(new Error('failed', { cause: { secret } }))],
  ['its properties', (secret) => inspect(Reflect.ownKeys(secret)) + inspect({ ...secret })],
  ['a structured clone', (secret) => inspect(structuredClone({ ...secret }))],
];

describe('Secret', () => {
  it('gives its text to who asks', () => {
    fc.assert(fc.property(text, (value) => new Secret(value).reveal() === value));
  });

  it.each(printings)('is not shown by %s', (_, print) => {
    fc.assert(fc.property(text, (value) => !print(new Secret(value)).includes(value)));
  });

  it('says that it is there', () => {
    const secret = new Secret('s3cret');
    expect(String(secret)).toBe('[redacted]');
    expect(JSON.stringify({ secret })).toBe('{"secret":"[redacted]"}');
    expect(inspect({ secret })).toBe('{ secret: [redacted] }');
  });

  it('has no property that holds it, and takes none', () => {
    const secret = new Secret('s3cret');
    expect(Reflect.ownKeys(secret)).toEqual([]);
    expect(Object.isFrozen(secret)).toBe(true);
  });
});
