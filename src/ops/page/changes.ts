import type { RecentStatusChange, Status } from '../status/status-json.ts';
import { byId, html, setText, show } from './dom.ts';
import { keyedList } from './keyed-list.ts';
import { fieldName, timeOfDay } from './words.ts';

/** The latest status changes, the newest first. Statuses are anybody's text. */
export function changesView(): (status: Status) => void {
  const none = byId('changes-none');
  const note = byId('changes-note');
  const list = keyedList<RecentStatusChange>({
    parent: byId('changes'),
    // One of them may happen again; equal ones of one moment are told apart by their places.
    key: (change, place) => JSON.stringify([change, isRepeated(change, place)]),
    make: (change) => {
      const { at, order, subject, subjectId, field, from, to } = change;
      const what = fieldName(subject, field);
      const status = (text: string | null) =>
        text === null
          ? html('span', { class: 'absent' }, 'none')
          : html('bdi', { title: text }, text);
      const element = html(
        'li',
        {},
        html('time', { datetime: new Date(at).toISOString() }, timeOfDay(at)),
        html('span', { class: 'order', title: subjectId ?? order }, order),
        html('span', { class: 'field' }, what),
        html(
          'span',
          { class: 'change' },
          status(from),
          html('span', { class: 'to', role: 'img', 'aria-label': 'to' }, '→'),
          status(to),
        ),
      );
      return { element };
    },
  });
  const seen = new Map<string, number>();
  const isRepeated = (change: RecentStatusChange, place: number): number => {
    if (place === 0) seen.clear();
    const text = JSON.stringify(change);
    const times = (seen.get(text) ?? 0) + 1;
    seen.set(text, times);
    return times;
  };
  return ({ statusChanges }) => {
    list(statusChanges);
    show(none, statusChanges.length === 0);
    setText(note, statusChanges.length > 0 ? `the newest ${statusChanges.length}` : '');
  };
}
