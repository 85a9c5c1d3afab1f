import type { AsOf, Commit, Landing } from '../../contract/index.ts'
import { required } from '../../values/required.ts'

/**
 * A commit in transit to another thread. A thousand small objects take four times as long to copy as the same values in
 * a few arrays of strings, so the landings are sent as columns; a column of nulls is omitted.
 */
export interface PackedCommit {
  readonly commit: Omit<Commit, 'landings'>
  readonly keys: readonly string[]
  /** Null for a delete. */
  readonly texts: ReadonlyArray<string | null>
  readonly hashes: ReadonlyArray<string | null>
  readonly databases: readonly string[]
  readonly cursors: ReadonlyArray<string | null> | null
  readonly upstreamAts: ReadonlyArray<string | null> | null
  readonly asOfs: ReadonlyArray<AsOf | null> | null
}

export function packCommit({ landings, ...commit }: Commit): PackedCommit {
  const packed = {
    commit,
    keys: [] as string[],
    texts: [] as Array<string | null>,
    hashes: [] as Array<string | null>,
    databases: [] as string[],
    cursors: [] as Array<string | null>,
    upstreamAts: [] as Array<string | null>,
    asOfs: [] as Array<AsOf | null>,
  }
  let [hasCursors, hasTimes, hasOrders, oneDatabase] = [false, false, false, true]
  for (const landing of landings) {
    const upsert = landing.type === 'upsert' ? landing : null
    packed.keys.push(landing.key)
    packed.texts.push(upsert?.text ?? null)
    packed.hashes.push(upsert?.hash ?? null)
    packed.databases.push(landing.database)
    packed.cursors.push(upsert?.cursor ?? null)
    packed.upstreamAts.push(landing.upstreamAt)
    packed.asOfs.push(upsert?.asOf ?? null)
    hasCursors ||= (upsert?.cursor ?? null) !== null
    hasTimes ||= landing.upstreamAt !== null
    hasOrders ||= upsert?.asOf !== undefined
    oneDatabase &&= landing.database === landings[0]?.database
  }
  return {
    ...packed,
    databases: oneDatabase ? packed.databases.slice(0, 1) : packed.databases,
    cursors: hasCursors ? packed.cursors : null,
    upstreamAts: hasTimes ? packed.upstreamAts : null,
    asOfs: hasOrders ? packed.asOfs : null,
  }
}

export function unpackCommit({
  commit,
  keys,
  texts,
  hashes,
  databases,
  cursors,
  upstreamAts,
  asOfs,
}: PackedCommit): Commit {
  const landings = keys.map((key, at): Landing => {
    const database = required(databases[at] ?? databases[0], 'The database of a landing')
    const text = texts[at] ?? null
    const upstreamAt = upstreamAts?.[at] ?? null
    if (text === null) return { type: 'delete', database, key, upstreamAt }
    const asOf = asOfs?.[at] ?? null
    return {
      type: 'upsert',
      database,
      key,
      text,
      hash: required(hashes[at], 'The hash of a landing'),
      cursor: cursors?.[at] ?? null,
      upstreamAt,
      ...(asOf !== null && { asOf }),
    }
  })
  return { ...commit, landings }
}
