import { map } from 'rxjs';
import type { ListRequest } from './answer.ts';
import type { PersonalFields } from '../records/personal-fields.ts';

/** A list's request, with its personal fields hidden before anybody sees an answer. */
export function hidingList(request: ListRequest, personal?: PersonalFields): ListRequest {
  if (!personal) return request;
  return (query, limit) =>
    request(query, limit).pipe(
      map((answer) => ({
        ...answer,
        data: answer.data.map((record) => record.hidden(personal.hide)),
      })),
    );
}
