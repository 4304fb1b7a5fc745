import { styleSeeds } from './seeds.ts';

styleSeeds(1, 2);
