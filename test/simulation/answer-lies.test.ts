import { expect, test } from 'vitest'
import { FalseResponses } from '../../src/testing/simulation/vendors/false-responses.ts'
import { hubspotContacts } from '../../src/testing/simulation/vendors/hubspot.ts'
import { runVendorWorld } from '../../src/testing/simulation/vendors/vendor-world.ts'

test('O1: an answer that is given a second time is as old as the first time, for the cycles that it was given to', async () => {
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

/** Worlds that broke a promise once. */
const BROKEN_ONCE: Readonly<Record<number, string>> = {
  40367: 'O1: two empty answers of ServiceNow passed rows over',
  44194: 'O16: a page of an earlier listing of HubSpot’s archive moved the tidemark past a deletion',
  50638: 'O1: a page given again showed a row that was gone',
  63554: 'O16: a runner’s clock half a second ahead, and a Date header that is an hour ahead',
  64084: 'O13: a position within a second of ServiceNow was refused for ever',
  80778: 'O1: a page given again, with a page to sign in between',
}

test.each(Object.entries(BROKEN_ONCE))('the world of seed %s holds every promise (%s)', async (seed) => {
  const { violations } = await runVendorWorld({ seed: Number(seed) })
  expect(violations).toEqual([])
})
