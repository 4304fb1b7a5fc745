import type { PiiConfig } from '../config/config.ts';
import type { JsonValue } from '../schemas/json/json.ts';
import { namedFields } from './personal-fields-of.ts';
import type { Resource } from '../resources/resources.ts';
import type { DecodedListOptions } from '../streams/decode/list-request.ts';
import { volatileFields } from '../streams/records/volatile-fields.ts';

export interface UnseenFieldsOptions {
  readonly pii: PiiConfig;
  /** Pointers to fields whose change alone is no event. Default none. */
  readonly volatile?: readonly string[];
  readonly resource: Resource;
  /** Told each name once, without the list: `tender_info.last_four`, or the pointer of a volatile field. */
  readonly onUnseen: (field: string) => void;
}

/** Records that are looked at before a field counts as unseen. */
const ENOUGH = 100;

/**
 * Looks at a list's answers, before anything is hidden: tells which of the fields that the settings name
 * none of its first 100 records has, nor any record of a whole list that has fewer. A name that is spelled
 * wrong does nothing.
 */
export function unseenFields(
  options: UnseenFieldsOptions,
): NonNullable<DecodedListOptions['look']> {
  const { pii, volatile = [], resource, onUnseen } = options;
  const pointed = volatile.map((name) => ({ name, without: volatileFields([name]).without }));
  const fieldsIn = (data: readonly JsonValue[]) => [
    ...namedFields(pii, resource, data),
    ...pointed.map(({ name, without }) => {
      return { name, isSeen: data.some((each) => without(each) !== each) };
    }),
  ];
  const unseen = new Set(fieldsIn([]).map(({ name }) => name));
  let looked = 0;
  return (answer, query) => {
    if (unseen.size === 0) return;
    const { data, pagination } = answer;
    if (data.length === 0) return;
    looked += data.length;
    for (const { name, isSeen } of fieldsIn(data.map(({ json }) => json))) {
      if (isSeen) unseen.delete(name);
    }
    const isWhole = query.modifiedFromDate === undefined && query.orderNumber === undefined;
    if (looked < ENOUGH && !(isWhole && !pagination.has_next_page)) return;
    for (const name of unseen) onUnseen(name);
    unseen.clear();
  };
}
