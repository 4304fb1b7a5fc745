import { map } from 'rxjs';
import { jsonOf } from './sent-record.ts';
import type { PersonalFields } from './personal-fields.ts';
import type { ListRequest } from '../http/request.ts';
import { UnreadableRecord } from '../http/unreadable-record.ts';

/** A list's request, with its personal fields hidden before anybody sees an answer. */
export function hidingList(request: ListRequest, personal?: PersonalFields): ListRequest {
  if (!personal) return request;
  return (query, limit) =>
    request(query, limit).pipe(
      map((answer) => ({
        ...answer,
        data: answer.data.map((sent) =>
          sent instanceof UnreadableRecord ? sent.hidden() : personal.hide(jsonOf(sent)),
        ),
      })),
    );
}
