/** The pagination object of a list's answer. */
export interface Pagination {
  readonly current_offset: number;
  readonly page_size: number;
  readonly total_records: number;
  readonly total_pages: number;
  readonly current_page: number;
  readonly pages_remaining: number;
  readonly has_next_page: boolean;
  readonly has_previous_page: boolean;
}

/**
 * Works out the eight fields. `page_size` is what was asked for, not what came; pages are counted
 * from 1; an offset between pages belongs to the page it falls in.
 */
export function paginationOf(offset: number, pageSize: number, total: number): Pagination {
  const pagesRemaining = Math.max(0, Math.ceil((total - offset - pageSize) / pageSize));
  return {
    current_offset: offset,
    page_size: pageSize,
    total_records: total,
    total_pages: Math.ceil(total / pageSize),
    current_page: Math.floor(offset / pageSize) + 1,
    pages_remaining: pagesRemaining,
    has_next_page: pagesRemaining > 0,
    has_previous_page: offset > 0,
  };
}
