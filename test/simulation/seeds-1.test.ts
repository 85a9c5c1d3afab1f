import { test } from 'vitest'
import { expectNoBrokenPromise } from './seeds.ts'

test('no invariant is broken in worlds of any kind, half 1', () => expectNoBrokenPromise(0, 2), 12 * 3_600_000)
