import { join } from 'node:path'
import { describe, test } from 'vitest'
import { describeStore } from '../../src/testing/describe-store.ts'
import { buildPackage } from '../cli/package.ts'
import { openHarnessOf, type SqliteModules } from './sqlite-harness.ts'

// The store of a file runs in its own thread, which only compiled code can start.
const compiled = join(buildPackage(), 'dist/stores/sqlite/store.js')
describeStore(
  'sqlite, in a thread,',
  async () => {
    const modules = (await import(compiled)) as SqliteModules
    const { supports, ...harness } = await openHarnessOf(modules)
    // Another thread cannot be stopped between two statements; the same code is stopped everywhere in sqlite.test.ts.
    return { ...harness, supports: { select: supports!.select! } }
  },
  { runner: { describe, test } },
)
