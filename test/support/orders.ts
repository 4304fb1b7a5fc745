import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';

/** The list of orders of the built-in API. */
export const ORDERS = listNamed(WINE, 'orders');
