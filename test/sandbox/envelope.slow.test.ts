import fc from 'fast-check';
import { expect, it } from 'vitest';
import { paginationOf } from '../../src/sandbox/list-page.ts';

it('agrees with a walk through the pages', () => {
  fc.assert(
    fc.property(fc.nat(5_000), fc.integer({ min: 1, max: 1_000 }), (total, pageSize) => {
      let pages = 0;
      for (let offset = 0; ; offset += pageSize) {
        const pagination = paginationOf(offset, pageSize, total);
        pages++;
        expect(pagination.current_page).toBe(pages);
        expect(pagination.has_previous_page).toBe(pages > 1);
        expect(pagination.pages_remaining).toBe(Math.max(0, pagination.total_pages - pages));
        expect(pagination.has_next_page).toBe(offset + pageSize < total);
        if (!pagination.has_next_page) break;
      }
      expect(paginationOf(0, pageSize, total).total_pages).toBe(total === 0 ? 0 : pages);
    }),
  );
});

it('says from any offset whether more records come', () => {
  fc.assert(
    fc.property(
      fc.nat(3_000),
      fc.nat(3_000),
      fc.integer({ min: 1, max: 99 }),
      (total, offset, size) => {
        const { has_next_page, pages_remaining } = paginationOf(offset, size, total);
        expect(has_next_page).toBe(offset + size < total);
        expect(pages_remaining).toBe(Math.max(0, Math.ceil((total - offset - size) / size)));
      },
    ),
  );
});
