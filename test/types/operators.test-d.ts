import { of } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expectTypeOf, it } from 'vitest';
import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import * as api from '../../src/exports/streams.ts';
import type {
  Answer,
  Change,
  Difference,
  KeyedRecord,
  Limit,
  Operation,
  Position,
  ScanPage,
  ScanTrouble,
  StatusField,
  Token,
} from '../../src/exports/streams.ts';
import type { ChangeEvent, JsonObject, StatusSubject } from '../../src/exports/schemas.ts';
import { toJson } from '../../src/exports/schemas.ts';
import type { Proof } from '../../src/index.ts';
import { orderStatus } from '../../src/exports/order-status.ts';
import { STATUS_FIELDS } from '../../src/description/wine/order-status.ts';
import { gatherFirst } from '../../src/streams/flow/gather-first.ts';
import { BEGINNING } from '../../src/streams/paging/anchors.ts';
import { NO_SWEEP } from '../../src/streams/paging/sweep-progress.ts';
import type { SweepStep } from '../../src/streams/paging/sweeps.ts';
import { chooseKeyFields } from '../../src/streams/records/records.ts';

const url = new URL('http://127.0.0.1');
declare const answer$: Observable<Answer>;
declare const change$: Observable<Change>;
declare const token$: Observable<Token>;
declare const limit: Limit;
const keyOf = api.keyOfFields(['order_number']);

describe('token and quota', () => {
  it('tokenBucket keeps the type of what passes, in its lanes too', () => {
    const bucket = api.tokenBucket({ capacity: 100, windowMs: 60_000 });
    expectTypeOf(of('a').pipe(bucket)).toEqualTypeOf<Observable<string>>();
    expectTypeOf(of({ a: 1 }).pipe(bucket.lane({ rank: 1 }))).toEqualTypeOf<
      Observable<{ a: number }>
    >();
    expectTypeOf(bucket.lane({})).not.toHaveProperty('lane');
    // @ts-expect-error the window is needed
    api.tokenBucket({ capacity: 100 });
  });

  it('login gives tokens, and tokenSource takes them', () => {
    const login$ = api.login({ baseUrl: url, description: WINE, apiKey: () => 'key', limit });
    expectTypeOf(login$).toEqualTypeOf<Observable<Token>>();
    expectTypeOf(api.tokenSource({ login: login$ }).token$).toEqualTypeOf<Observable<Token>>();
    expectTypeOf(api.tokenSource({ login: token$ }).current()).toEqualTypeOf<Token | undefined>();
    // @ts-expect-error a key is asked for at each login
    api.login({ baseUrl: url, description: WINE, apiKey: 'key', limit });
    // @ts-expect-error a token is more than its text
    api.tokenSource({ login: of('token') });
  });

  it('backoff keeps the type', () => {
    expectTypeOf(token$.pipe(api.backoff())).toEqualTypeOf<Observable<Token>>();
  });
});

describe('request and pages', () => {
  it('listRequest needs a quota for each request', () => {
    const list = api.listRequest({
      ...{ baseUrl: url, list: listNamed(WINE, 'orders') },
      tokens: api.tokenSource({ login: token$ }),
    });
    expectTypeOf(list({ offset: 0, pageSize: 10 }, limit)).toEqualTypeOf<Observable<Answer>>();
    // @ts-expect-error no request without a limit
    list({ offset: 0 });
    // @ts-expect-error the API has no such parameter
    list({ page: 1 }, limit);
  });

  it('pages gives pages and where to go on', () => {
    const pages$ = api.pages({ request: () => answer$, keyOf });
    expectTypeOf(pages$).toEqualTypeOf<Observable<ScanPage>>();
    expectTypeOf<ScanPage['next']>().toEqualTypeOf<Position | undefined>();
    api.pages({
      request: ({ offset, pageSize }) => {
        expectTypeOf(offset).toBeNumber();
        expectTypeOf(pageSize).toBeNumber();
        return answer$;
      },
      keyOf,
      onTrouble: (trouble) => expectTypeOf(trouble).toEqualTypeOf<ScanTrouble>(),
    });
    // @ts-expect-error records have to be told apart
    api.pages({ request: () => answer$ });
    // @ts-expect-error an offset alone is no position
    api.pages({ request: () => answer$, keyOf, from: { offset: 10 } });
    // @ts-expect-error left out, not undefined
    api.pages({ request: () => answer$, keyOf, pageSize: undefined });
  });

  it('what a page holds can not be altered', () => {
    expectTypeOf<Answer['data']>().not.toExtend<unknown[]>();
    // @ts-expect-error read-only
    BEGINNING.offset = 1;
  });
});

describe('diff and status', () => {
  it('diff, poll and requests take clocks that a program creates', () => {
    expectTypeOf(new api.ServerClock()).toEqualTypeOf<NonNullable<api.PollOptions['clock']>>();
    const newest = new api.NewestReads(new api.LogicalClock());
    expectTypeOf(api.diff).toBeCallableWith({ newest });
    expectTypeOf(new api.AnswerAges()).toHaveProperty('of');
  });

  it('diff keeps what came with the records', () => {
    const read = { records: [] as KeyedRecord[], lane: 'poll' as const };
    const difference$ = of(read).pipe(api.diff());
    expectTypeOf(difference$).toEqualTypeOf<Observable<Difference<typeof read>>>();
    expectTypeOf<Difference<typeof read>['read']['lane']>().toEqualTypeOf<'poll'>();
    expectTypeOf<Difference<typeof read>['changes']>().toEqualTypeOf<readonly Change[]>();
    // @ts-expect-error records need their keys
    of({ records: [{ order_number: 1 }] }).pipe(api.diff());
  });

  it('a change has an operation of four, and images that may be null', () => {
    expectTypeOf<Operation>().toEqualTypeOf<'r' | 'c' | 'u' | 'd'>();
    expectTypeOf<Change['before']>().toEqualTypeOf<JsonObject | null>();
    // @ts-expect-error who wants the new image has to think of deletions
    change$.subscribe(({ after }) => after.order_number);
  });

  it('status changes are of the nine fields', () => {
    // Distinct names: `status` is that of an edit and that of a fulfilment.
    expectTypeOf<StatusField>().toEqualTypeOf<
      | 'payment_status'
      | 'fulfillment_status'
      | 'status'
      | 'shipment_status'
      | 'package_status'
      | 'customer_package_status'
      | 'wine_club_order_status'
      | 'compliance_status'
    >();
    const { order, order_edit, fulfillment, club_package } = STATUS_FIELDS;
    const all = [...order, ...order_edit, ...fulfillment, ...club_package] as const;
    expectTypeOf(all.length).toEqualTypeOf<9>();
    expectTypeOf<keyof typeof STATUS_FIELDS>().toEqualTypeOf<StatusSubject>();

    change$.pipe(orderStatus()).subscribe(([status]) => {
      expectTypeOf(status!.field).toEqualTypeOf<StatusField>();
      // @ts-expect-error no such status field
      return status?.field === 'total_price';
    });
  });

  it('the console sink passes changes on', () => {
    expectTypeOf(change$.pipe(api.consoleSink())).toEqualTypeOf<Observable<Change>>();
    // @ts-expect-error it prints changes, not pages of them
    of({ records: [] as KeyedRecord[] }).pipe(api.diff(), api.consoleSink());
  });
});

describe('sweeps', () => {
  it('steps are told apart by their kinds', () => {
    const told = (step: SweepStep) => {
      if (step.kind === 'page') expectTypeOf(step.page).toEqualTypeOf<ScanPage>();
      if (step.kind === 'absent') expectTypeOf(step.keys).toEqualTypeOf<readonly string[]>();
      if (step.kind === 'asked') expectTypeOf(step.answer).toEqualTypeOf<Answer | undefined>();
      // @ts-expect-error the end has no answer
      if (step.kind === 'end') expectTypeOf(step.answer).toBeNever();
    };
    expectTypeOf(NO_SWEEP.proof).toEqualTypeOf<Proof>();
    expectTypeOf(told).toBeFunction();
  });

  it('values are gathered as what they are', () => {
    const gathered$ = of(1).pipe(gatherFirst((all) => all.length > 2));
    expectTypeOf(gathered$).toEqualTypeOf<Observable<readonly number[]>>();
  });

  it('a key that was chosen is told apart from none', () => {
    const choice = chooseKeyFields([], [['id']]);
    if (choice?.fields) expectTypeOf(choice.fields).toEqualTypeOf<readonly string[]>();
    else if (choice) expectTypeOf(choice.seen).toEqualTypeOf<readonly string[]>();
  });

  it('a record comes back from an event as text', () => {
    const event = {} as ChangeEvent;
    expectTypeOf(toJson(event)).toEqualTypeOf<string | null>();
  });
});
