// The lists of recent status changes, and of recent dead letters (records that could not be published).

import type { RecentDeadLetter, RecentStatusChange, Status } from '../status/status-json.ts';
import { byId, html, keyedList, setText, show } from './dom.ts';
import { count, fieldName, plural, since, timeOfDay } from './words.ts';

/** Returns a function that updates the list of recent status changes. Statuses are untrusted text from the API. */
export function changesView(): (status: Status) => void {
  const none = byId('changes-none');
  const note = byId('changes-note');
  const list = keyedList<RecentStatusChange>({
    parent: byId('changes'),
    key: (change) => JSON.stringify(change),
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
  return ({ statusChanges }) => {
    list(statusChanges);
    show(none, statusChanges.length === 0);
    setText(note, statusChanges.length > 0 ? `the newest ${statusChanges.length}` : '');
  };
}

interface Reason {
  readonly resource: string;
  readonly reason: string;
  readonly letters: number;
}

/** Returns a function that updates the list of dead letters: their number by list and reason, and the latest ones. */
export function deadLettersView(): (status: Status) => void {
  const none = byId('letters-none');
  const note = byId('letters-note');
  const reasons = keyedList<Reason>({
    parent: byId('reasons'),
    key: ({ resource, reason }) => `${resource} ${reason}`,
    make: ({ resource, reason }) => {
      const letters = html('strong');
      const element = html('li', {}, letters, ` ${resource}: ${WORDS[reason] ?? reason}`);
      return { element, update: (now) => setText(letters, count(now.letters)) };
    },
  });
  const latest = keyedList<RecentDeadLetter & { readonly now: number }>({
    parent: byId('letters'),
    key: ({ at, resource, reason, offset }) => [at, resource, reason, offset].join(' '),
    make: ({ at, resource, reason, offset }) => {
      const time = html('time', { datetime: new Date(at).toISOString() });
      const place = ` ${resource}${offset === null ? '' : `, page at ${count(offset)}`}: `;
      const element = html('li', {}, time, place, html('code', {}, reason));
      return { element, update: ({ now }) => setText(time, since(at, now)) };
    },
  });
  return ({ resources, deadLetters, at }) => {
    const all = resources.flatMap(({ resource, deadLetters: counts }) =>
      Object.entries(counts).map(([reason, letters]) => ({ resource, reason, letters })),
    );
    const total = all.reduce((sum, { letters }) => sum + letters, 0);
    reasons(all.sort((a, b) => b.letters - a.letters));
    latest(deadLetters.map((letter) => ({ ...letter, now: at })));
    show(byId('reasons'), total > 0);
    show(byId('letters'), total > 0);
    show(none, total === 0);
    setText(note, total > 0 ? plural(total, 'record') : '');
  };
}

const WORDS: Readonly<Record<string, string>> = {
  'no-key': 'no key',
  'not-an-object': 'no JSON object',
  'conflicting-duplicate': 'twice on one page, with two contents',
  'too-large': 'larger than a message may be',
  unreadable: 'no JSON',
};
