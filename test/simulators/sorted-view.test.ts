import { describe, expect, test } from 'vitest'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { churn } from '../../simulators/src/kit/churn.ts'
import { ManualClock } from '../../simulators/src/kit/manual-clock.ts'
import { countLeading, type RecordView } from '../../simulators/src/kit/sorted-view.ts'
import { VersionedRecords, type RecordVersion } from '../../simulators/src/kit/versioned-records.ts'
import { HubspotSimulator } from '../../simulators/src/hubspot/simulator.ts'
import { SalesforceSimulator } from '../../simulators/src/salesforce/simulator.ts'
import { ServicenowSimulator } from '../../simulators/src/servicenow/simulator.ts'
import { portsOf } from './ports.ts'

const byChange = (a: RecordVersion, b: RecordVersion): number =>
  a.modifiedAtMs - b.modifiedAtMs || (a.id < b.id ? -1 : 1)
const groupOf = ({ fields }: RecordVersion): string => String(Number(fields['n']) % 3)

describe('a sorted view', () => {
  test.each([1, 2, 3, 4, 5])('equals a full sort, whatever becomes visible late (seed %i)', (seed) => {
    const { clock, random } = portsOf(seed)
    const table = new VersionedRecords({ clock, random }, { share: 0.5, maxMs: 50 })
    const view: RecordView = { reads: 'index', includes: ({ deleted }) => !deleted, order: byChange, group: groupOf }
    const draw = new RandomStream(seed, 'writes')
    for (let round = 0; round < 60; round++) {
      // Alternates between a few writes and more than are inserted one by one.
      for (let writes = draw.next() < 0.2 ? 80 : 3; writes > 0; writes--) {
        const live = table.current('t')
        const chosen = live[Math.floor(draw.next() * live.length)]
        const kind = draw.next()
        if (chosen === undefined || kind < 0.4)
          table.insert('t', `id${draw.next()}`, { n: Math.floor(draw.next() * 9) })
        else if (kind < 0.8) table.update('t', chosen.id, { n: Math.floor(draw.next() * 9) })
        else table.remove('t', chosen.id)
      }
      clock.advance(Math.floor(draw.next() * 20))
      for (const group of ['0', '1', '2']) {
        const anew = table
          .indexed('t')
          .filter((version) => !version.deleted && groupOf(version) === group)
          .toSorted(byChange)
        expect(table.sorted('t', view, group)).toEqual(anew)
      }
    }
  })

  test('a write to a table of many records is inserted without a full scan', () => {
    const { clock, random } = portsOf()
    const table = new VersionedRecords({ clock, random })
    let compared = 0
    const view: RecordView = {
      reads: 'primary',
      includes: () => true,
      order: (a, b) => {
        compared++
        return byChange(a, b)
      },
    }
    for (let n = 0; n < 10_000; n++) table.insert('t', String(n), {})
    expect(table.sorted('t', view)).toHaveLength(10_000)
    clock.advance(1)
    table.update('t', '5000', {})
    compared = 0
    expect(table.sorted('t', view).at(-1)!.id).toBe('5000')
    expect(compared).toBeLessThan(40)
  })

  test('a clock that was set back hides records it had shown', () => {
    let nowMs = 1_000
    const table = new VersionedRecords(
      { clock: { now: () => nowMs, sleep: async () => {} }, random: new RandomStream(1, 'x') },
      { share: 1, maxMs: 10 },
    )
    const view: RecordView = { reads: 'index', includes: () => true, order: byChange }
    table.insert('t', '1', {})
    nowMs = 1_010
    expect(table.sorted('t', view)).toHaveLength(1)
    nowMs = 1_000
    expect(table.sorted('t', view)).toEqual(table.indexed('t'))
  })

  test('binary search finds where a list turns', () => {
    for (const length of [0, 1, 2, 7, 64]) {
      const list = Array.from({ length }, (_, n) => n)
      for (let turn = 0; turn <= length; turn++) expect(countLeading(list, (n) => n < turn)).toBe(turn)
    }
  })
})

/** Many records per second, some changed, some deleted, some not visible yet. */
function filled<Vendor extends HubspotSimulator | SalesforceSimulator | ServicenowSimulator>(
  make: (ports: { clock: ManualClock; random: RandomStream }) => Vendor,
  type: string,
  field: string,
) {
  const ports = portsOf(7)
  const simulator = make(ports)
  for (let round = 0; round < 12; round++) {
    churn(simulator, { type, writes: 25, random: ports.random, fields: (n) => ({ [field]: String(n) }) })
    ports.clock.advance(500)
  }
  const fetch = createSimulatorFetch(simulator)
  const ask = async (path: string, body?: object): Promise<any> => {
    const response = await fetch(`https://vendor.example${path}`, {
      headers: { authorization: 'Bearer t' },
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    })
    return { ...((await response.json()) as object), count: response.headers.get('x-total-count') }
  }
  return {
    simulator,
    ask,
    stamps: [...Array(8).keys()].map((n) => new Date(Date.UTC(2026, 0, 1) + n * 1_000 - 1_000).toISOString()),
  }
}

describe('an index returns the same as a full scan', () => {
  test('salesforce: a keyset by timestamp and id', async () => {
    const { ask, stamps, simulator } = filled(
      (ports) => new SalesforceSimulator(ports, { lag: { share: 0.3, maxMs: 3_000 }, granularityMs: 1_000 }),
      'Account',
      'Name',
    )
    const ids = simulator.records
      .latest('Account')
      .map(({ id }) => id)
      .toSorted()
    const query = async (resource: string, where: string, order: string): Promise<unknown> =>
      (
        await ask(
          `/services/data/v65.0/${resource}?q=${encodeURIComponent(`SELECT FIELDS(ALL) FROM Account${where} ORDER BY ${order} LIMIT 20`)}`,
        )
      ).records
    expect(await query('query', '', 'CreatedDate, Id')).toHaveLength(20)
    for (const resource of ['query', 'queryAll']) {
      for (const stamp of ['CreatedDate', 'SystemModstamp']) {
        for (const time of stamps) {
          for (const where of [
            '',
            ` WHERE ${stamp} >= ${time}`,
            ` WHERE (${stamp} > ${time} OR (${stamp} = ${time} AND Id > '${ids[60]!}')) AND ${stamp} <= ${stamps.at(-2)!}`,
            ` WHERE NOT ${stamp} < ${time}`,
          ]) {
            // The third field changes nothing, but no index is sorted by it.
            expect(await query(resource, where, `${stamp}, Id`)).toEqual(
              await query(resource, where, `${stamp}, Id, Name`),
            )
          }
        }
      }
    }
  })

  test('servicenow: a keyset in two queries, and the total', async () => {
    const { ask, stamps, simulator } = filled(
      (ports) => new ServicenowSimulator(ports, { lag: { share: 0.3, maxMs: 3_000 } }),
      'incident',
      'number',
    )
    const ids = simulator.records
      .latest('incident')
      .map(({ id }) => id)
      .toSorted()
    const query = async (conditions: string, order: string, offset: number): Promise<unknown> =>
      ask(
        `/api/now/table/incident?sysparm_limit=20&sysparm_suppress_pagination_header=true&sysparm_offset=${offset}&sysparm_query=${encodeURIComponent(`${conditions}${order}`)}`,
      )
    expect(await query('', 'ORDERBYsys_created_on^ORDERBYsys_id', 0)).toMatchObject({
      count: String(simulator.records.indexed('incident').filter(({ deleted }) => !deleted).length),
      result: { length: 20 },
    })
    for (const stamp of ['sys_created_on', 'sys_updated_on']) {
      for (const time of stamps.map((text) => text.slice(0, 19).replace('T', ' '))) {
        const until = stamps.at(-2)!.slice(0, 19).replace('T', ' ')
        for (const conditions of [
          '',
          `${stamp}>=${time}^`,
          `${stamp}>${time}^${stamp}<=${until}^NQ${stamp}=${time}^sys_id>${ids[60]!}^${stamp}<=${until}^`,
          `${stamp}<${time}^NQ${stamp}>=${until}^`,
          `${stamp}>=${time}^numberISNOTEMPTY^`,
          `${stamp}>${time}^ORsys_id>${ids[60]!}^`,
        ]) {
          for (const offset of [0, 15]) {
            const order = `ORDERBY${stamp}^ORDERBYsys_id`
            expect(await query(conditions, order, offset)).toEqual(
              await query(conditions, `${order}^ORDERBYnumber`, offset),
            )
          }
        }
      }
    }
  })

  test('hubspot: by time, and by id within one timestamp', async () => {
    const { ask, simulator } = filled(
      (ports) => new HubspotSimulator(ports, { lag: { share: 0.3, maxMs: 3_000 } }),
      'contacts',
      'email',
    )
    const times = [...new Set(simulator.records.latest('contacts').map(({ modifiedAtMs }) => modifiedAtMs))]
    const ids = simulator.records.latest('contacts').map(({ id }) => id)
    const filter = (propertyName: string, operator: string, value: string | number, highValue?: number) => ({
      propertyName,
      operator,
      value: String(value),
      ...(highValue !== undefined && { highValue: String(highValue) }),
    })
    const found = async (
      filters: object[],
      sort: string,
    ): Promise<{ total: number; ids: string[]; times: string[] }> => {
      const { total, results } = await ask('/crm/v3/objects/contacts/search', {
        filterGroups: [{ filters }],
        sorts: [{ propertyName: sort, direction: 'ASCENDING' }],
        limit: 200,
      })
      return {
        total,
        ids: results.map(({ id }: { id: string }) => id).toSorted(),
        times: results.map(({ properties }: any) => properties.lastmodifieddate),
      }
    }
    for (const from of times) {
      const until = times.at(-2)!
      const indexed = await found(
        [filter('lastmodifieddate', 'GTE', from), filter('lastmodifieddate', 'LTE', until)],
        'lastmodifieddate',
      )
      expect(indexed).toEqual(await found([filter('lastmodifieddate', 'BETWEEN', from, until)], 'lastmodifieddate'))
      expect(indexed.times).toEqual(indexed.times.toSorted())
      const within = await found(
        [
          filter('lastmodifieddate', 'EQ', from),
          filter('hs_object_id', 'GT', ids[3]!),
          filter('hs_object_id', 'LTE', ids.at(-5)!),
        ],
        'hs_object_id',
      )
      expect(within).toEqual(
        await found(
          [
            filter('lastmodifieddate', 'BETWEEN', from, from),
            filter('hs_object_id', 'GT', ids[3]!),
            filter('hs_object_id', 'LTE', ids.at(-5)!),
          ],
          'hs_object_id',
        ),
      )
    }
  })
})
