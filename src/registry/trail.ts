import type { Store } from '../contract/index.ts'
import { linkHash, linkText } from './chain.ts'

export interface TrailVerdict {
  readonly intact: boolean
  readonly entries: number
  /** Of the newest entry. Whoever writes it down elsewhere can tell later whether the trail before it is still the same. */
  readonly head: string
  /** The first entry that does not follow from the one before it. */
  readonly brokenAt: { readonly id: number; readonly why: string } | null
  /** Whether the head that was expected is in the trail; null when none was. */
  readonly holdsExpected: boolean | null
}

const PAGE = 1_000

/** Goes through the whole trail of a tenant and joins its links anew. `expect`: a head seen before, which must still be in it. */
export async function verifyTrail(store: Store, expect?: string): Promise<TrailVerdict> {
  let [previous, entries, after] = ['', 0, 0]
  let holdsExpected = expect === undefined ? null : expect === ''
  const verdict = (brokenAt: TrailVerdict['brokenAt'], head: string): TrailVerdict => ({ intact: brokenAt === null && holdsExpected !== false, entries, head, brokenAt, holdsExpected })
  for (;;) {
    const page = await store.trail({ after, limit: PAGE })
    for (const entry of page.entries) {
      after = entry.id
      // From before there was a chain. Were a later one made to look so, the next would no longer follow.
      if (entries === 0 && entry.hash === '') continue
      const link = linkHash(previous, linkText(entry))
      if (link !== entry.hash) return verdict({ id: entry.id, why: 'It was changed, or the one before it is another than it was.' }, previous)
      if (link === expect) holdsExpected = true
      previous = link
      entries++
    }
    if (page.entries.length === PAGE) continue
    // Others may have added some since the page was read: then the end is not the end yet.
    const now = await store.trail({ after, limit: 1 })
    if (now.entries.length > 0) continue
    if (now.head !== previous || now.count !== entries) return verdict({ id: after, why: `${now.count - entries} entries are missing after it.` }, previous)
    return verdict(null, previous)
  }
}
