import { promisify } from 'node:util';
import { gzip, unzip } from 'node:zlib';
import kafkajs from 'kafkajs';

/** Of zlib's 1 to 9, by default 6: two thirds of that one's time, for a twentieth more bytes. */
const LEVEL = 4;
/** Room for what comes out: zlib goes through the event loop once for each piece. */
const PIECE_BYTES = 2 ** 18;

const compress: (bytes: Buffer, options: { level: number; chunkSize: number }) => Promise<Buffer> =
  promisify(gzip);
const decompress: (bytes: Buffer) => Promise<Buffer> = promisify(unzip);

const CODEC = {
  compress: ({ buffer }: { readonly buffer: Buffer }) =>
    compress(buffer, { level: LEVEL, chunkSize: PIECE_BYTES }),
  decompress: (bytes: Buffer) => decompress(bytes),
};

/**
 * Has kafkajs compress with gzip quicker than it does by itself: partition after partition waits for it, within each
 * transaction. kafkajs has one codec for all clients of a process, so it is for whoever the process belongs to.
 */
export function useQuickGzip(): void {
  kafkajs.CompressionCodecs[kafkajs.CompressionTypes.GZIP] = () => CODEC;
}
