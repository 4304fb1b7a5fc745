import type avro from 'avsc';

/** Bytes that a first value may take before the buffer grows. */
const FIRST_BYTES = 16_384;

/**
 * `type.toBuffer`, quicker: avsc writes what is over 1 KB twice, once to learn its length. This
 * keeps a buffer of its own, as large as the largest value so far.
 *
 * @throws Error when the value isn't one of the type.
 */
export function avroWriter(type: avro.Type): (value: unknown) => Buffer {
  let buffer = Buffer.allocUnsafe(FIRST_BYTES);
  return (value) => {
    let length = type.encode(value, buffer);
    if (length < 0) {
      buffer = Buffer.allocUnsafe((buffer.length - length) * 2);
      length = type.encode(value, buffer);
    }
    return Buffer.from(buffer.subarray(0, length));
  };
}

/** The same bytes as a Buffer, which avsc asks for. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
