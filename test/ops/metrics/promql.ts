import { parser } from '@prometheus-io/lezer-promql';
import type { SyntaxNode } from '@lezer/common';

/** `name="value"` and the like, of one selector. */
export interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

/** Series that an expression asks for. */
export interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

/** What an expression speaks of. */
export interface Parsed {
  /** The places where it is no PromQL; empty for one that is. */
  readonly errors: readonly string[];
  readonly selectors: readonly Selector[];
  /** Labels that results are grouped or matched by: of `by`, `on` and the like. */
  readonly groupings: readonly string[];
}

/** An expression of PromQL, taken apart. */
export function parsePromql(expression: string): Parsed {
  const textOf = ({ from, to }: { from: number; to: number }) => expression.slice(from, to);
  const errors: string[] = [];
  const selectors: Selector[] = [];
  const groupings: string[] = [];
  parser.parse(expression).iterate({
    enter: (at) => {
      if (at.type.isError)
        errors.push(`at ${at.from}: ${expression.slice(Math.max(0, at.from - 10), at.to + 10)}`);
      if (at.name === 'VectorSelector') selectors.push(selectorOf(at.node));
      if (at.name === 'GroupingLabels') {
        groupings.push(...at.node.getChildren('LabelName').map(textOf));
      }
    },
  });
  return { errors, selectors, groupings };

  function selectorOf(node: SyntaxNode): Selector {
    const name = node.getChild('Identifier');
    const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
    return {
      metric: name ? textOf(name) : '',
      matchers: matchers.map((matcher) => ({
        label: textOf(matcher.getChild('LabelName')!),
        operator: textOf(matcher.getChild('MatchOp')!),
        value: JSON.parse(textOf(matcher.getChild('StringLiteral')!)) as string,
      })),
    };
  }
}
