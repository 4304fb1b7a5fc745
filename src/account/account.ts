import type { Config } from '../config/config.ts';
import { volatilePointers } from '../config/volatile-fields-of.ts';
import type { ResourceRules } from '../resources/resources.ts';
import type { ListRequest } from '../streams/decode/response.ts';
import type { PagePlan } from '../streams/http/page-plan.ts';
import type { LogicalClock } from '../streams/http/logical-clock.ts';
import type { TokenSource } from '../streams/http/token.ts';
import { parsingDecoder } from '../streams/decode/decoder.ts';
import type { Decoder } from '../streams/decode/decoder.ts';
import type { KeyOf } from '../streams/records/key-of.ts';
import type { PersonalFields } from '../streams/records/personal-fields.ts';
import { volatileFields } from '../streams/records/volatile-fields.ts';
import type { VolatileFields } from '../streams/records/volatile-fields.ts';
import type { Api } from './api.ts';
import { personalFieldsOf } from './personal-fields-of.ts';
import type { Quotas } from './quotas.ts';
import { unmatchedFields } from './unmatched-fields.ts';

/** One account at the API: its token, its quotas, and its lists with personal fields hidden. */
export interface Account {
  readonly name: string;
  readonly tokens: TokenSource;
  /** Returns the lanes of a list, each with its share of the quota: see {@link Quotas.lanes}. */
  readonly lanes: Quotas['lanes'];
  readonly list: (rules: ResourceRules, options?: AccountListOptions) => AccountList;
}

export interface AccountListOptions {
  /** Called with each field name in the settings that no record has; see {@link unmatchedFields}. */
  readonly onUnmatchedField?: (field: string) => void;
}

/** How the pages of a list are decoded into records. */
export interface DecodingOptions {
  /** Returns a record's key. Default: records have no keys. */
  readonly keyOf?: KeyOf;
  /** Decoder of pages. Default: parses each record as JSON. */
  readonly decode?: Decoder;
}

/** One list of an account: the requests for its pages, and its hidden and volatile fields. */
export interface AccountList {
  /** Logical clock that numbers the begin and the end of each of the list's reads, so that overlapping reads are recognized. */
  readonly clock: LogicalClock;
  /** Chooses the list offset and the size of the next page to request. */
  readonly plan: PagePlan;
  /**
   * Requests pages, decoded into records. If the list has hidden fields, each record is parsed and its fields are hidden before it is
   * passed on. `decode` is ignored then, as it works on the bytes that were sent, in which nothing is hidden.
   */
  readonly pages: (decoding?: DecodingOptions) => ListRequest;
  /** The list's hidden fields, also needed for images stored before the fields were hidden; undefined if none are hidden. */
  readonly personal: PersonalFields | undefined;
  /** Volatile fields: a change of these alone publishes no event. */
  readonly volatile: VolatileFields;
}

export interface AccountOptions {
  readonly config: Pick<Config, 'account' | 'pii' | 'volatileFields'>;
  readonly api: Pick<Api, 'tokens' | 'list'>;
  readonly quotas: Pick<Quotas, 'lanes'>;
}

export function openAccount({ config, api, quotas }: AccountOptions): Account {
  const { pii } = config;
  return {
    name: config.account,
    tokens: api.tokens,
    lanes: (resource, seenBefore) => quotas.lanes(resource, seenBefore),
    list: (rules, { onUnmatchedField } = {}) => {
      const { resource } = rules;
      const { clock, plan, pages } = api.list(rules);
      const personal = personalFieldsOf(pii, resource);
      const volatile = volatileFields(volatilePointers(config, resource));
      const inspect =
        onUnmatchedField &&
        unmatchedFields({ pii, volatile: volatile.pointers, resource, onUnmatchedField });
      return {
        clock,
        plan,
        pages: ({ keyOf, decode } = {}) =>
          pages({
            decode: decode && !personal ? decode : parsingDecoder(keyOf),
            hide: personal?.hide,
            ...(inspect && { inspect }),
          }),
        personal,
        volatile,
      };
    },
  };
}
