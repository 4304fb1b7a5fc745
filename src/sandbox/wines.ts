import { Random } from './random.ts';

/** A bottle, or a thing, that can be sold. */
export interface Wine {
  readonly product_name: string;
  readonly variant_name: string;
  readonly product_type: string;
  readonly sku: string;
  /** In cents. */
  readonly cents: number;
  readonly vintage: number | null;
  readonly varietal: string | null;
}

const VARIETALS = [
  'Cabernet Sauvignon',
  'Pinot Noir',
  'Chardonnay',
  'Zinfandel',
  'Syrah',
  'Merlot',
  'Rosé',
  'Sauvignon Blanc',
  'Gewürztraminer',
  'Grüner Veltliner',
  'Albariño',
  'Mourvèdre',
];
const BLOCKS = ['Estate', 'Reserve', 'Old Vine', 'Hillside', 'Block 7', 'Côte', 'Founder’s'];
const SIZES = [
  ['750 ml', 1],
  ['375 ml', 0.55],
  ['1.5 L', 2.1],
] as const;
const GOODS = [
  ['Corkscrew "Sommelier"', 'Merchandise', 2_450],
  ['Tasting for two', 'Event', 9_000],
  ['Gift card', 'Gift Card', 5_000],
  ['Olive oil', 'Food', 1_875],
] as const;

/** What the winery sells: `count` things, the same for the same seed. */
export function makeCatalogue(seed: number, count: number): readonly Wine[] {
  return Array.from({ length: count }, (_, k) => {
    const random = new Random(seed ^ 0x3ca7a, k);
    const sku = `CS-${100_001 + k}`;
    const goods = k % 16 === 15 ? GOODS[(k >> 4) % GOODS.length]! : undefined;
    if (goods) {
      const [name, type, cents] = goods;
      return {
        product_name: name,
        variant_name: 'Default',
        product_type: type,
        sku,
        cents,
        vintage: null,
        varietal: null,
      };
    }
    const vintage = random.between(2016, 2023);
    const varietal = random.pick(VARIETALS);
    const [size, factor] = random.pick([SIZES[0], SIZES[0], SIZES[0], SIZES[1], SIZES[2]]);
    return {
      product_name: `${vintage} ${random.pick(BLOCKS)} ${varietal}`,
      variant_name: size,
      product_type: 'Wine',
      sku,
      cents: Math.round(random.between(18, 140) * factor) * 100 - random.pick([0, 1, 5, 50]),
      vintage,
      varietal,
    };
  });
}
