import type { Commit, Landing } from '../../contract/index.ts'

/**
 * A commit on its way to another thread. Copying a thousand small objects costs more than landing them is worth, so the
 * landings travel as a few long strings: JSON text holds no raw line break, and hashes have a fixed width.
 */
export interface PackedCommit {
  readonly commit: Omit<Commit, 'landings'>
  /** `u` for upsert, `d` for delete, in order. */
  readonly types: string
  readonly databases: readonly string[]
  /** Index into `databases`; absent when there is only one. */
  readonly databaseOf: Uint16Array | null
  readonly keys: readonly string[]
  readonly texts: string
  readonly hashes: string
  readonly cursors: ReadonlyArray<string | null> | null
  readonly upstreamAts: ReadonlyArray<string | null> | null
}

const HASH_LENGTH = 40

export function packCommit({ landings, ...commit }: Commit): PackedCommit {
  const databases = [...new Set(landings.map((landing) => landing.database))]
  const upserts = landings.filter((landing) => landing.type === 'upsert')
  return {
    commit,
    types: landings.map((landing) => (landing.type === 'upsert' ? 'u' : 'd')).join(''),
    databases,
    databaseOf: databases.length < 2 ? null : Uint16Array.from(landings, (landing) => databases.indexOf(landing.database)),
    keys: landings.map((landing) => landing.key),
    texts: upserts.map((landing) => landing.text).join('\n'),
    hashes: upserts.map((landing) => landing.hash).join(''),
    cursors: upserts.some((landing) => landing.cursor !== null) ? upserts.map((landing) => landing.cursor) : null,
    upstreamAts: landings.some((landing) => landing.upstreamAt !== null) ? landings.map((landing) => landing.upstreamAt) : null,
  }
}

export function unpackCommit(packed: PackedCommit): Commit {
  const texts = packed.texts.split('\n')
  let upsert = 0
  const landings = packed.keys.map((key, index): Landing => {
    const database = packed.databases[packed.databaseOf?.[index] ?? 0]!
    const upstreamAt = packed.upstreamAts?.[index] ?? null
    if (packed.types[index] === 'd') return { type: 'delete', database, key, upstreamAt }
    const at = upsert++
    return {
      type: 'upsert', database, key, text: texts[at]!, hash: packed.hashes.slice(at * HASH_LENGTH, (at + 1) * HASH_LENGTH),
      cursor: packed.cursors?.[at] ?? null, upstreamAt,
    }
  })
  return { ...packed.commit, landings }
}
