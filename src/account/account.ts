import type { Config } from '../config/config.ts';
import { volatilePointers } from '../config/volatile-fields-of.ts';
import type { ResourceRules } from '../resources/resources.ts';
import type { ListRequest } from '../streams/decode/answer.ts';
import type { PagePlan } from '../streams/http/page-plan.ts';
import type { LogicalClock } from '../streams/http/logical-clock.ts';
import type { TokenSource } from '../streams/http/token.ts';
import { parsing } from '../streams/decode/decoder.ts';
import type { Decoder } from '../streams/decode/decoder.ts';
import type { KeyOf } from '../streams/records/key-of.ts';
import type { PersonalFields } from '../streams/records/personal-fields.ts';
import { volatileFields } from '../streams/records/volatile-fields.ts';
import type { VolatileFields } from '../streams/records/volatile-fields.ts';
import type { Api } from './api.ts';
import { personalFieldsOf } from './personal-fields-of.ts';
import type { Quotas } from './quotas.ts';
import { unseenFields } from './unseen-fields.ts';

/** One account at the API: its token, its quotas, and its lists without what is personal. */
export interface Account {
  readonly name: string;
  readonly tokens: TokenSource;
  /** See {@link Quotas.lanes}. */
  readonly lanes: Quotas['lanes'];
  readonly list: (rules: ResourceRules, options?: AccountListOptions) => AccountList;
}

export interface AccountListOptions {
  /** Told each name of a setting that no record has; see {@link unseenFields}. */
  readonly onUnseen?: (field: string) => void;
}

/** How records are made of pages. */
export interface Decoding {
  /** A record's key. Default: none has one. */
  readonly keyOf?: KeyOf;
  /** Default: records are parsed. */
  readonly decode?: Decoder;
}

/** One list of an account. */
export interface AccountList {
  /** The order of its requests. */
  readonly clock: LogicalClock;
  /** Where its pages are asked for. */
  readonly plan: PagePlan;
  /**
   * Its pages as records. Of a list of which something is hidden each record is parsed, and nobody sees it before that is
   * done: what is hidden is no longer what was sent, so `decode` is left out there.
   */
  readonly pages: (decoding?: Decoding) => ListRequest;
  /** What is hidden; undefined where nothing is. For images that were stored before it was to be. */
  readonly personal: PersonalFields | undefined;
  /** The fields whose change alone is no event. */
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
    lanes: quotas.lanes,
    list: (rules, { onUnseen } = {}) => {
      const { resource } = rules;
      const { clock, plan, pages } = api.list(rules);
      const personal = personalFieldsOf(pii, resource);
      const volatile = volatileFields(volatilePointers(config, resource));
      const look =
        onUnseen && unseenFields({ pii, volatile: volatile.pointers, resource, onUnseen });
      return {
        clock,
        plan,
        pages: ({ keyOf, decode } = {}) =>
          pages({
            decode: decode && !personal ? decode : parsing(keyOf),
            hide: personal?.hide,
            ...(look && { look }),
          }),
        personal,
        volatile,
      };
    },
  };
}
