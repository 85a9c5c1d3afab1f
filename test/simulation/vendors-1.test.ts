import { test } from 'vitest'
import { expectNoBrokenVendorPromise } from './vendor-seeds.ts'

test('no promise is broken in worlds of any vendor, half 1', () => expectNoBrokenVendorPromise(0, 2), 3_600_000)
