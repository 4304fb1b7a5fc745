import { html, setText } from './dom.ts';
import { count } from './words.ts';

/** A choice of what is shown, with how many there are of each. */
export interface ShownChoice {
  readonly chosen: () => string;
  readonly count: (of: (name: string) => number) => void;
}

/** Radio buttons in `parent`; the first is chosen at first. */
export function shownChoice(
  parent: HTMLElement,
  choices: readonly { readonly name: string; readonly label: string }[],
  onChoice: () => void,
): ShownChoice {
  const buttons = choices.map(({ name, label }, nth) => {
    const input = html('input', { type: 'radio', name: 'shown', value: name });
    input.checked = nth === 0;
    input.addEventListener('change', onChoice);
    const times = html('span', { class: 'times' });
    parent.append(html('label', {}, input, `${label} `, times));
    return { name, input, times };
  });
  return {
    chosen: () => buttons.find(({ input }) => input.checked)!.name,
    count: (of) => {
      for (const { name, times } of buttons) setText(times, count(of(name)));
    },
  };
}
