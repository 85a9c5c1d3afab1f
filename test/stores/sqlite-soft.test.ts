import { describe, test } from 'vitest'
import { openHarness } from './sqlite-harness.ts'
import { describeSoftStore, type TombstonesOf } from './soft-harness.ts'

const tombstonesOf: TombstonesOf = async ({ supports }) => {
  const [databases, tombstones] = [
    await supports!.select!('tidemark_databases'),
    await supports!.select!('tidemark_tombstones'),
  ]
  return new Map(
    databases.map((row) => [
      row['table_name'] as string,
      new Set(
        tombstones
          .filter((tombstone) => tombstone['database_id'] === row['database_id'])
          .map((tombstone) => tombstone['key'] as string),
      ),
    ]),
  )
}

describeSoftStore('sqlite', openHarness, tombstonesOf, { describe, test })
