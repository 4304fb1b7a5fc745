import type { Random } from './random.ts';
import type { JsonObject } from './resources.ts';
import type { Wine } from './wines.ts';

/** A product. The fields are made up: the API's description shows none. */
export function makeProduct(
  basics: { number: number; createdAt: string; updatedAt: string },
  wine: Wine,
  random: Random,
): JsonObject {
  return {
    id: basics.number,
    title: wine.product_name,
    type: wine.product_type,
    vintage: wine.vintage,
    varietal: wine.varietal,
    is_active: random.chance(0.9),
    description: random.pick([
      null,
      'Dark fruit, cedar & a long finish.',
      'Ein Wein für den Sommer ☀️',
    ]),
    ...(wine.vintage === null ? {} : { alcohol_percent: random.between(115, 155) / 10 }),
    variants: [{ variant_name: wine.variant_name, price: wine.cents / 100, weight_lb: 2.65 }],
    created_at: basics.createdAt,
    updated_at: basics.updatedAt,
  };
}

/** What happens to a product, at random. */
export function alterProduct(product: JsonObject, random: Random): void {
  if (random.chance(0.4)) {
    product.is_active = product.is_active !== true;
    return;
  }
  const [variant, ...others] = product.variants as JsonObject[];
  product.variants = [{ ...variant, price: random.between(1_000, 15_000) / 100 }, ...others];
}
