import { describe, test } from 'vitest'
import { describeDestination } from '../../src/testing/describe-destination.ts'
import { openMemoryDestination } from './memory-destination.ts'

describeDestination('memory', async () => openMemoryDestination(), { runner: { describe, test } })
