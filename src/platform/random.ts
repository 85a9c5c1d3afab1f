import type { Random } from '../contract/index.ts'

/** For jitter; not for keys. */
export const systemRandom: Random = { next: () => Math.random() }
