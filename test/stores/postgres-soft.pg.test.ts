import { describe, inject, test } from 'vitest'
import { openHarness } from './postgres-harness.ts'
import { describeSoftStore, type TombstonesOf } from './soft-harness.ts'

const tombstonesOf: TombstonesOf = async ({ supports }) => {
  const [databases, tombstones] = [
    await supports!.select!('tidemark.databases'),
    await supports!.select!('tidemark.tombstones'),
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

describe.skipIf(inject('postgresUrl') === '')('on PostgreSQL', () => {
  describeSoftStore('postgres', openHarness, tombstonesOf, { describe, test })
})
