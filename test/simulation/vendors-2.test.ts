import { test } from 'vitest'
import { expectNoBrokenVendorPromise } from './vendor-seeds.ts'

test('no promise is broken in worlds of any vendor, half 2', () => expectNoBrokenVendorPromise(1, 2), 3_600_000)
