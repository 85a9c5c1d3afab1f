import type { Random } from '../contract/index.ts'

/** For jitter and the like; never for keys. */
export const systemRandom: Random = { next: () => Math.random() }
