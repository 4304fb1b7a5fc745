import type { RecentDeadLetter, Status } from '../status/status-json.ts';
import { byId, html, setText, show } from './dom.ts';
import { keyedList } from './keyed-list.ts';
import { count, plural, since } from './words.ts';

interface Reason {
  readonly resource: string;
  readonly reason: string;
  readonly letters: number;
}

/** Records that could not be published: how many, why, and the latest. */
export function deadLettersView(): (status: Status) => void {
  const none = byId('letters-none');
  const note = byId('letters-note');
  const reasons = keyedList<Reason>({
    parent: byId('reasons'),
    key: ({ resource, reason }) => `${resource} ${reason}`,
    make: ({ resource, reason }) => {
      const letters = html('strong');
      const element = html('li', {}, letters, ` ${resource}: ${inWords(reason)}`);
      return { element, update: (now) => setText(letters, count(now.letters)) };
    },
  });
  const latest = keyedList<RecentDeadLetter & { readonly told: number }>({
    parent: byId('letters'),
    key: ({ at, resource, reason, offset }, place) =>
      [at, resource, reason, offset, place].join(' '),
    make: ({ at, resource, reason, offset, told }) => ({
      element: html(
        'li',
        {},
        html('time', { datetime: new Date(at).toISOString() }, since(at, told)),
        ` ${resource}, page at ${count(offset)}: `,
        html('code', {}, reason),
      ),
    }),
  });
  return ({ resources, deadLetters, at }) => {
    const all = resources.flatMap((told) =>
      Object.entries(told.deadLetters).map(([reason, letters]): Reason => ({
        resource: told.resource,
        reason,
        letters,
      })),
    );
    const total = all.reduce((sum, { letters }) => sum + letters, 0);
    reasons(all.sort((a, b) => b.letters - a.letters));
    latest(deadLetters.map((letter) => ({ ...letter, told: at })));
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

function inWords(reason: string): string {
  return WORDS[reason] ?? reason;
}
