import { expect, test } from 'vitest'
import type { Commit, Landing } from '../../src/contract/index.ts'
import { packCommit, unpackCommit } from '../../src/stores/sqlite/packed-commit.ts'

type Upsert = Extract<Landing, { type: 'upsert' }>
type Delete = Extract<Landing, { type: 'delete' }>

/** Every field a landing can have: an added field does not compile here until it is packed. */
const UPSERT: Required<Upsert> = {
  type: 'upsert',
  database: 'people',
  key: 'a',
  text: '{"n":1}',
  hash: 'h',
  cursor: '7',
  upstreamAt: '2026-01-01T00:00:00.000000Z',
  asOf: 'event',
}
const DELETE: Required<Delete> = {
  type: 'delete',
  database: 'people',
  key: 'b',
  upstreamAt: '2026-01-02T00:00:00.000000Z',
}

test.each<[string, Landing[]]>([
  ['with every field', [UPSERT, DELETE]],
  ['without the optional fields', [plain('a'), { ...DELETE, upstreamAt: null }]],
  [
    'of which some have the optional fields',
    [plain('a'), UPSERT, plain('c'), { ...UPSERT, asOf: 'read', database: 'rooms' }, DELETE],
  ],
  ['(none)', []],
])('a commit packed for the thread is unpacked unchanged, with landings %s', (_name, landings) => {
  const commit = { version: 3, at: 5, landings } as unknown as Commit
  expect(unpackCommit(structuredClone(packCommit(commit)))).toStrictEqual(commit)
})

function plain(key: string): Upsert {
  const { asOf: _, ...rest } = UPSERT
  return { ...rest, key, cursor: null, upstreamAt: null }
}
