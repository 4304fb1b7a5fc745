import { byId, html, keyedList, setAttributes, setText, show } from './dom.ts';
import type { Tone, Verdict, Wrong } from './judgement.ts';
import { plural } from './words.ts';

/** Colours of the page's icon: they have to do on light and dark tabs alike. */
const ICONS: Readonly<Record<Tone, string>> = {
  good: '#2f9e68',
  warn: '#c08a1e',
  busy: '#5a86c9',
  bad: '#d8453b',
  lost: '#8d8589',
};
const MARKS: Readonly<Record<Tone, string>> = {
  good: '✓',
  warn: '~',
  busy: '…',
  bad: '!',
  lost: '?',
};

/** Further ones are a keystroke away. */
const MAX_LINES = 4;

/** Says first, and in words, what is wrong; or that nothing is. Of what, the tab's title says. */
export function verdictView(): (verdict: Verdict, of: string) => void {
  const section = byId('verdict');
  const headline = byId('headline');
  const subline = byId('subline');
  const mark = byId('mark');
  const icon = byId('icon');
  const said = byId('said');
  let told = '';
  const more = byId('more');
  const moreTitle = byId('more-title');
  const first = wrongList(byId('wrong'));
  const rest = wrongList(byId('more-wrong'));

  return (verdict, of) => {
    const { tone } = verdict;
    setAttributes(section, { 'data-tone': tone });
    setText(headline, verdict.headline);
    setText(subline, verdict.subline);
    setText(mark, MARKS[tone]);
    first(verdict.wrong.slice(0, MAX_LINES));
    rest(verdict.wrong.slice(MAX_LINES));
    const hidden = verdict.wrong.length - MAX_LINES;
    show(more, hidden > 0);
    setText(moreTitle, plural(hidden, 'more line'));
    setAttributes(icon, { href: iconOf(ICONS[tone]) });
    setText(document.querySelector('title')!, `${MARKS[tone]} ${of} · Cellarstream`);

    // Read out once for each kind of trouble, not each second with its figures.
    const kinds = [
      verdict.headline,
      ...verdict.wrong.map(({ level, where }) => `${level} ${where}`),
    ].join();
    if (kinds === told) return;
    told = kinds;
    setText(
      said,
      [verdict.headline, ...verdict.wrong.map((one) => `${one.where} ${one.text}`)].join('. '),
    );
  };
}

function wrongList(parent: HTMLElement): (items: readonly Wrong[]) => void {
  return keyedList<Wrong>({
    parent,
    key: ({ level, where }, place) => `${level} ${where} ${place}`,
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
