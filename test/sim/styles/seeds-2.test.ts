import { styleSeeds } from './seeds.ts';

styleSeeds(2, 2);
