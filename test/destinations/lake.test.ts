import { describe, test } from 'vitest'
import { describeDestination } from '../../src/testing/describe-destination.ts'
import { openLakeHarness } from './lake-harness.ts'

describeDestination('lake, Iceberg on a folder', () => openLakeHarness(), { runner: { describe, test } })
describeDestination('lake, Parquet on a folder', () => openLakeHarness({ format: 'parquet' }), {
  runner: { describe, test },
})
