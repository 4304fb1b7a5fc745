import { describe, expect, it } from 'vitest';
import { crc32c } from '../../../src/sinks/producer/record-batch.ts';
import { mulberry32 } from '../../support/chance.ts';
import { slowCrc32c } from '../../support/slow-crc32c.ts';

describe('crc32c', () => {
  it.each([
    ['nothing', Buffer.alloc(0), 0],
    ['the digits that all checksums are shown with', Buffer.from('123456789'), 0xe3069283],
    // RFC 3720, B.4
    ['32 zeros', Buffer.alloc(32), 0x8a9136aa],
    ['32 ones', Buffer.alloc(32, 0xff), 0x62a8ab43],
    ['32 that rise', Buffer.from(Array.from({ length: 32 }, (_, n) => n)), 0x46dd794e],
    ['32 that fall', Buffer.from(Array.from({ length: 32 }, (_, n) => 31 - n)), 0x113fdb5c],
  ])('is what others have of %s', (_, bytes, sum) => {
    expect(crc32c(bytes)).toBe(sum);
    expect(slowCrc32c(bytes)).toBe(sum);
  });

  it('is that of bit by bit, of any bytes and lengths', () => {
    const random = mulberry32(1);
    for (let length = 0; length < 300; length++) {
      const bytes = Buffer.from(Array.from({ length }, () => random() * 256));
      expect(crc32c(bytes)).toBe(slowCrc32c(bytes));
    }
  });
});
