import { expect, test } from 'vitest'
import { FalseResponses } from '../../src/testing/simulation/vendors/false-responses.ts'
import { hubspotContacts } from '../../src/testing/simulation/vendors/hubspot.ts'
import { runVendorWorld } from '../../src/testing/simulation/vendors/vendor-world.ts'

test('O1: a replayed answer is as old as its first delivery, for the cycles that received it', async () => {
  let now = 1_000
  const lies = new FalseResponses(hubspotContacts, () => now, 0)
  const asked = { url: new URL('https://vendor.test/crm/v3/objects/contacts'), body: '' }
  const tell = (kind?: 'page-repeated' | 'login-page'): Promise<Response> =>
    lies.applyFault(new Response('{}'), asked, kind === undefined ? null : { id: '', kind, label: '', severity: 0 })
  await tell()
  now = 5_000
  await tell('login-page')
  now = 6_000
  await tell('page-repeated')
  now = 7_000
  await tell('page-repeated')
  expect([lies.oldestRepeatMs(0), lies.oldestRepeatMs(6_500), lies.oldestRepeatMs(7_001)]).toEqual([6_000, 6_000, 0])
  await tell()
  now = 8_000
  await tell('page-repeated')
  expect(lies.oldestRepeatMs(7_001)).toBe(1_000)
})

/** Worlds that once broke an invariant. */
const BROKEN_ONCE: Readonly<Record<number, string>> = {
  40367: 'O1: two empty answers of ServiceNow skipped rows',
  44194: 'O16: a page of an earlier listing of HubSpot’s archive moved the tidemark past a deletion',
  50638: 'O1: a repeated page showed a deleted row',
  63554: 'O16: a runner’s clock half a second ahead, and a Date header that is an hour ahead',
  701650: 'O19: a page from before an absence longer than the retention was repeated',
  64084: 'O13: a cursor within a second of ServiceNow was refused for ever',
  80778: 'O1: a repeated page, with a sign-in page in between',
  800820: 'O2: a list without lookup began with a page of the listing before it',
  803068: 'O1: a frozen process landed a deleted row less than the lag before the last listing began',
  803018: 'O16: an empty response was repeated twice in a row',
  1309745: 'O4: a cached page had the same second in its Date header as the page that no longer showed the row',
  1200819: 'O4: the vendor’s clock was set back, and its search index showed the replaced version later',
}

test.each(Object.entries(BROKEN_ONCE))('the world of seed %s keeps every invariant (%s)', async (seed) => {
  const { violations } = await runVendorWorld({ seed: Number(seed) })
  expect(violations).toEqual([])
})
