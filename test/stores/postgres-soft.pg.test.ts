import { describe, inject, test } from 'vitest'
import { openHarness } from './postgres-harness.ts'
import { DELETING_CASES, describeSoftStore, SOFT_CASES, type TombstonesOf } from './soft-harness.ts'

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

// A case on PostgreSQL takes a fifth of a second. sqlite-soft.test.ts runs all of them, and `npm run campaign:process`
// runs all of them here.
const cases = process.env['TIDEMARK_LONG'] === '1' ? SOFT_CASES : DELETING_CASES

describe.skipIf(inject('postgresUrl') === '')('on PostgreSQL', () => {
  describeSoftStore('postgres', openHarness, tombstonesOf, { describe, test }, cases)
})
