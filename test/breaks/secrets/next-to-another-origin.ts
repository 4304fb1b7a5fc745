import * as real from '../../../src/streams/http/request-plan.ts';
import type { ListQuery } from '../../../src/streams/http/request-plan.ts';

export * from '../../../src/streams/http/request-plan.ts';

/** The address of the next page is requested with the token, whatever its origin. Noticed by test/streams/paging/paging-styles.test.ts. */
export class RequestPlan extends real.RequestPlan {
  override requestOf(query: ListQuery): real.PlannedRequest {
    const { cursor, ...first } = query;
    const planned = super.requestOf(this.list.paging === 'link' ? first : query);
    const url =
      this.list.paging === 'link' && cursor !== undefined && URL.parse(cursor, this.url.href);
    return url ? { ...planned, url } : planned;
  }
}
