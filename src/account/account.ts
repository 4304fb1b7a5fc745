import type { Config } from '../config/config.ts';
import { volatilePointers } from '../config/field-problems.ts';
import type { ListDescription } from '../description/description.ts';
import type { ListRequest } from '../streams/decode/response.ts';
import type { TokenSource } from '../streams/http/token.ts';
import { parsingDecoder } from '../streams/decode/decoder.ts';
import type { Decoder } from '../streams/decode/decoder.ts';
import type { KeyOf } from '../streams/records/key-of.ts';
import type { PersonalFields } from '../streams/records/personal-fields.ts';
import { Stamps } from '../streams/records/stamps.ts';
import { volatileFields } from '../streams/records/volatile-fields.ts';
import type { VolatileFields } from '../streams/records/volatile-fields.ts';
import type { Api, ApiList } from './api.ts';
import { personalFieldsOf, unmatchedFields } from './personal-fields-of.ts';
import type { Quotas } from './quotas.ts';

/** One account at the API: its token, its quotas, and its lists with personal fields hidden. */
export interface Account {
  readonly name: string;
  readonly tokens: TokenSource;
  readonly lanes: Quotas['lanes'];
  /**
   * Returns the access to one list. `onUnmatchedField` is called with each field that a setting names but no record has: see {@link
   * unmatchedFields}.
   */
  readonly list: (
    list: ListDescription,
    options?: { onUnmatchedField?: (field: string) => void },
  ) => AccountList;
}

/**
 * One list of an account: the requests for its pages, the personal fields that are hidden, and the fields whose changes are ignored.
 */
export interface AccountList extends Pick<ApiList, 'clock' | 'plan'> {
  /**
   * Requests pages, decoded into records.
   *
   * @param decoding.keyOf Returns a record's key. Not called if `decode` is used. Default: records have no keys.
   * @param decoding.decode Decoder of pages. Ignored if the list has hidden fields. Default: parses each record as JSON.
   */
  readonly pages: (decoding?: { keyOf?: KeyOf; decode?: Decoder }) => ListRequest;
  /** Functions that hide the list's personal fields, in responses and in records that were stored earlier; undefined if none are hidden. */
  readonly personal: PersonalFields | undefined;
  /** Reads the creation and modification times (stamps) of the list's records. */
  readonly stamps: Stamps;
  /** Volatile fields of the list. A change of only these fields publishes no event. */
  readonly volatile: VolatileFields;
}

export function openAccount(options: {
  readonly config: Pick<Config, 'account' | 'description' | 'pii' | 'volatileFields'>;
  readonly api: Pick<Api, 'tokens' | 'list'>;
  readonly quotas: Pick<Quotas, 'lanes'>;
}): Account {
  const { config, api, quotas } = options;
  const { pii } = config;
  return {
    name: config.account,
    tokens: api.tokens,
    lanes: (resource, seenBefore) => quotas.lanes(resource, seenBefore),
    list: (list, { onUnmatchedField } = {}) => {
      const { name: resource } = list;
      const { clock, plan, pages } = api.list(list);
      const stamps = new Stamps(list, config.description.times);
      const personal = personalFieldsOf(pii, resource);
      const volatile = volatileFields(volatilePointers(config, resource));
      const inspect =
        onUnmatchedField && unmatchedFields(pii, resource, volatile.pointers, onUnmatchedField);
      return {
        clock,
        plan,
        pages: ({ keyOf, decode } = {}) =>
          pages({
            // `decode` works on the bytes that the API sent, in which no field is hidden yet.
            decode: decode && !personal ? decode : parsingDecoder(keyOf, stamps),
            hide: personal?.hide,
            ...(inspect && { inspect }),
          }),
        personal,
        stamps,
        volatile,
      };
    },
  };
}
