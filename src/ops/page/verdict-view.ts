import { byId, html, keyedList, setAttributes, setText, show } from './dom.ts';
import type { Tone, Verdict, Wrong } from './status-verdict.ts';
import { plural } from './words.ts';

/**
 * Symbol beside the summary of a status page, and colour of the icon in the browser tab, by the tone of the summary. The colours are
 * visible on light and dark tabs.
 */
const TONES: Readonly<Record<Tone, { readonly sign: string; readonly colour: string }>> = {
  good: { sign: '✓', colour: '#2f9e68' },
  warn: { sign: '~', colour: '#c08a1e' },
  busy: { sign: '…', colour: '#5a86c9' },
  bad: { sign: '!', colour: '#d8453b' },
  lost: { sign: '?', colour: '#8d8589' },
};

/** Maximum number of problems that are always visible. Further ones are in an element that the user can expand. */
const MAX_LINES = 4;

/**
 * Returns a function that shows a summary (`verdict`) at the top of a status page, and in the title and the icon of its browser tab. `of`
 * is the name of the account or fleet.
 */
export function verdictView(): (verdict: Verdict, of: string) => void {
  const section = byId('verdict');
  const headline = byId('headline');
  const subline = byId('subline');
  const mark = byId('mark');
  const icon = byId('icon');
  const announcement = byId('said');
  let announced = '';
  const more = byId('more');
  const moreTitle = byId('more-title');
  const first = problemList(byId('wrong'));
  const rest = problemList(byId('more-wrong'));

  return (verdict, of) => {
    const { tone, problems } = verdict;
    const { sign, colour } = TONES[tone];
    setAttributes(section, { 'data-tone': tone });
    setText(headline, verdict.headline);
    setText(subline, verdict.subline);
    setText(mark, sign);
    first(problems.slice(0, MAX_LINES));
    rest(problems.slice(MAX_LINES));
    const hidden = problems.length - MAX_LINES;
    show(more, hidden > 0);
    setText(moreTitle, plural(hidden, 'more line'));
    setAttributes(icon, { href: iconOf(colour) });
    setText(document.querySelector('title')!, `${sign} ${of} · Cellarstream`);

    // Screen readers announce a change of the headline or of the kinds of problems, not each new figure.
    const kinds = problems.map(({ level, where }) => `${level} ${where}`);
    const announcing = [verdict.headline, ...kinds].join();
    if (announcing === announced) return;
    announced = announcing;
    const texts = problems.map(({ where, text }) => `${where} ${text}`);
    setText(announcement, [verdict.headline, ...texts].join('. '));
  };
}

function problemList(parent: HTMLElement): (items: readonly Wrong[]) => void {
  return keyedList<Wrong>({
    parent,
    key: ({ level, where }) => `${level} ${where}`,
    make: ({ level, where }) => {
      const text = html('span', { class: 'what' });
      const when = html('span', { class: 'when' });
      const children = where === '' ? [text, when] : [html('strong', {}, where), ' ', text, when];
      const element = html('li', { 'data-level': level }, ...children);
      return {
        element,
        update: (wrong) => {
          setText(text, wrong.text);
          setText(when, wrong.when);
        },
      };
    },
  });
}

function iconOf(colour: string): string {
  const circle = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="6" fill="${colour}"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(circle)}`;
}
