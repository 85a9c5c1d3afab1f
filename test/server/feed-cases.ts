import { describe, expect, test } from 'vitest'
import { remove, START, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { addKey, ServerFixture, type Answer, type Body, type OpenHarness } from './server-fixture.ts'

const LIST = '/agents/v1/things'
const CHANGES = '/agents/v1/changes'

/** Document 003 over real HTTP, on every store. */
export function describeFeed(name: string, open: OpenHarness): void {
  describe(`the feed on ${name}`, () => {
    // ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────
    test('A1 A16 A17 A18 a list without parameters is full, and returns how to continue', async () => {
      const stand = await filled(open, 5)
      const { status, body } = await stand.get(LIST)
      expect(status).toBe(200)
      expect(body.data.map(({ id, record }: Body) => [id, record])).toEqual(
        [0, 1, 2, 3, 4].map((n) => [`k${n}`, { n }]),
      )
      expect(body.data[0].updatedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(body.page).toEqual({
        nextCursor: expect.any(String),
        hasMore: false,
        syncMode: 'full',
        count: 5,
        limit: 50,
      })
    })

    test('A4 A19 with a cursor or a time it lists what changed', async () => {
      const stand = await filled(open, 3)
      const first = await stand.get(LIST)
      const driver = await SyncDriver.acquire(stand.store, { sync: 'later' })
      await driver.cycle([upsert('k1', { n: 10 })])
      const byCursor = await stand.get(`${LIST}?cursor=${first.body.page.nextCursor}`)
      expect([byCursor.body.page.syncMode, ids(byCursor)]).toEqual(['incremental', ['k1']])
      const byTime = await stand.get(`${LIST}?updatedSince=${byCursor.body.data[0].updatedAt}`)
      expect([byTime.body.page.syncMode, ids(byTime)]).toEqual(['incremental', ['k1']])
    })

    test('A9 AX4 items come by time and then by type and key, across pages, in lists and in changes', async () => {
      const stand = await ServerFixture.open(open)
      const driver = await stand.driver()
      for (let n = 0; n < 4; n++)
        await driver.cycle(
          ['d', 'a', 'c', 'b'].map((key) =>
            upsert(key + (n % 2), { n }, { database: key < 'c' ? 'things' : 'people' }),
          ),
        )
      const changes = await follow(stand, `${CHANGES}?limit=3`)
      expect(changes).toHaveLength(16)
      expect(changes.map((item) => [item.updatedAt, item.resourceType, item.resourceId].join(' '))).toEqual(
        changes.map((item) => [item.updatedAt, item.resourceType, item.resourceId].join(' ')).toSorted(),
      )
      const rows = await follow(stand, `${LIST}?limit=3`)
      expect(rows.map(({ updatedAt, id }) => `${updatedAt} ${id}`)).toEqual(
        rows.map(({ updatedAt, id }) => `${updatedAt} ${id}`).toSorted(),
      )
      expect(rows.map(({ id }) => id)).toEqual(['a0', 'b0', 'a1', 'b1'])
    })

    test('A10 AD1 a row that changes while a reader pages hides no other, and appears again', async () => {
      const stand = await filled(open, 6)
      const driver = await SyncDriver.acquire(stand.store, { sync: 'later' })
      const seen: string[] = []
      let cursor = ''
      for (let page = 0, more = true; more; page++) {
        const answer = await stand.get(`${LIST}?limit=2${cursor}`)
        seen.push(...ids(answer))
        more = answer.body.page.hasMore
        cursor = `&cursor=${answer.body.page.nextCursor}`
        if (page < 2) await driver.cycle([upsert(`k${page}`, { n: 100 + page })])
      }
      expect(seen).toEqual(['k0', 'k1', 'k2', 'k3', 'k4', 'k5', 'k0', 'k1'])
    })

    test('AD2 F15 A10 the last page of a full listing has a cursor that continues without a gap', async () => {
      const stand = await filled(open, 4)
      const last = await stand.get(`${LIST}?limit=4`)
      expect(last.body.page).toMatchObject({ hasMore: false, syncMode: 'full' })
      const driver = await SyncDriver.acquire(stand.store, { sync: 'later' })
      await driver.cycle([upsert('k9', { n: 9 })])
      const next = await stand.get(`${LIST}?cursor=${last.body.page.nextCursor}`)
      expect(ids(next)).toEqual(['k9'])
      const empty = await stand.get(`${LIST}?cursor=${next.body.page.nextCursor}`)
      expect(empty.body).toMatchObject({ data: [], page: { hasMore: false, nextCursor: expect.any(String) } })
      await driver.cycle([upsert('k8', { n: 8 })])
      expect(ids(await stand.get(`${LIST}?cursor=${empty.body.page.nextCursor}`))).toEqual(['k8'])
    })

    test('AD2 an empty store already returns a cursor, and no later change is missed', async () => {
      const stand = await ServerFixture.open(open)
      const { body } = await stand.get(CHANGES)
      await (await stand.driver()).cycle([upsert('a', { n: 1 })])
      expect((await stand.get(`${CHANGES}?cursor=${body.page.nextCursor}`)).body.data).toHaveLength(1)
    })

    test('A15 a list omits deleted rows; a single one returns 404', async () => {
      const stand = await filled(open, 3)
      await (await SyncDriver.acquire(stand.store, { sync: 'later' })).cycle([remove('k1')])
      expect(ids(await stand.get(LIST))).toEqual(['k0', 'k2'])
      expect((await stand.get(`${LIST}/k1`)).status).toBe(404)
      expect((await stand.get(`${LIST}/k2`)).body).toMatchObject({ data: { id: 'k2', record: { n: 2 } } })
    })

    test('a row is found by any key, its numbers are exact, and its ETag avoids the body', async () => {
      const stand = await ServerFixture.open(open)
      const key = 'a/b?c=ü%20 😀'
      await (await stand.driver()).cycle([upsert(key, '{"n":12345678901234567890,"__proto__":{"x":1}}')])
      const { headers, text } = await stand.get(`${LIST}/${encodeURIComponent(key)}`)
      expect(text).toMatch(/"n": ?12345678901234567890/)
      const again = await stand.get(`${LIST}/${encodeURIComponent(key)}`, {
        headers: { 'if-none-match': headers.get('etag')! },
      })
      expect([again.status, again.text]).toEqual([304, ''])
      expect((await stand.get(`${LIST}/${encodeURIComponent(key)}?fields=__proto__,nothing`)).text).toMatch(
        /"record":\{"__proto__":\{"x":1\}\}/,
      )
    })

    test('AX10 fields selects fields of the record, in lists and in changes', async () => {
      const stand = await ServerFixture.open(open)
      await (await stand.driver()).cycle([upsert('a', { name: 'A', age: 3, city: 'X' })])
      expect((await stand.get(`${LIST}?fields=name,age`)).body.data[0].record).toEqual({ name: 'A', age: 3 })
      expect((await stand.get(`${CHANGES}?fields=city`)).body.data[0].snapshot).toEqual({ city: 'X' })
    })

    // ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────
    test('A2 A13 A14 A20 A21 A22 AD5 every change is published: created, updated twice, deleted', async () => {
      const stand = await ServerFixture.open(open)
      const driver = await stand.driver()
      for (const landing of [upsert('a', { n: 1 }), upsert('a', { n: 2 }), upsert('a', { n: 3 }), remove('a')])
        await driver.cycle([landing])
      const { body } = await stand.get(`${CHANGES}?types=things`)
      expect(body.data.map(({ action, snapshot }: Body) => [action, snapshot])).toEqual([
        ['created', { n: 1 }],
        ['updated', { n: 2 }],
        ['updated', { n: 3 }],
        ['deleted', null],
      ])
      expect(body.data[3]).toEqual({
        eventId: expect.any(String),
        resourceType: 'thing',
        database: 'things',
        resourceId: 'a',
        action: 'deleted',
        updatedAt: expect.stringMatching(/Z$/),
        snapshot: null,
      })
      expect(body.page).toEqual({
        nextCursor: expect.any(String),
        hasMore: false,
        types: ['things'],
        count: 4,
        limit: 50,
      })
    })

    test('A12 T10 F13 F14 AD3 changes committed at once have different times; each has its own id', async () => {
      const stand = await ServerFixture.open(open)
      const driver = await stand.driver()
      for (let n = 0; n < 20; n++) await driver.cycle([upsert('a', { n })], { at: START })
      const { data } = (await stand.get(CHANGES)).body
      const times: string[] = data.map(({ updatedAt }: Body) => updatedAt)
      expect(times).toEqual([...new Set(times)].toSorted())
      expect(
        new Set(data.map((item: Body) => [item.resourceType, item.resourceId, item.updatedAt, item.action].join()))
          .size,
      ).toBe(20)
      expect(new Set(data.map(({ eventId }: Body) => eventId)).size).toBe(20)
    })

    test('A5 XF5 a cursor takes precedence over a time', async () => {
      const stand = await filled(open, 5)
      const { body } = await stand.get(`${CHANGES}?limit=3`)
      const both = await stand.get(`${CHANGES}?cursor=${body.page.nextCursor}&updatedSince=1970-01-01T00:00:00Z`)
      expect(both.body.data.map(({ resourceId }: Body) => resourceId)).toEqual(['k3', 'k4'])
      // Ignored: an invalid time does no harm beside a cursor.
      expect(
        (
          await stand.get(
            `${LIST}?cursor=${(await stand.get(`${LIST}?limit=1`)).body.page.nextCursor}&updatedSince=1970-01-01T00:00:00Z`,
          )
        ).body.data,
      ).toHaveLength(4)
    })

    test('A6 XF6 AX6 a time is inclusive, may have an offset, and must be RFC 3339', async () => {
      const stand = await ServerFixture.open(open)
      const driver = await stand.driver()
      for (let n = 0; n < 3; n++) await driver.cycle([upsert(`k${n}`, { n })], { at: START + n * 1_000 })
      const since = async (time: string): Promise<unknown> =>
        (await stand.get(`${CHANGES}?updatedSince=${encodeURIComponent(time)}`)).body.data?.map(
          ({ resourceId }: Body) => resourceId,
        )
      const expected: Array<[string, string[]]> = [
        ['2026-01-01T00:00:01Z', ['k1', 'k2']],
        ['2026-01-01T00:00:01.000Z', ['k1', 'k2']],
        ['2026-01-01T00:00:01.001Z', ['k2']],
        ['2026-01-01T00:00:01.0000001Z', ['k1', 'k2']],
        ['2026-01-01T00:00:01.000001Z', ['k2']],
        ['2026-01-01T02:00:01+02:00', ['k1', 'k2']],
        ['2025-12-31T19:00:01-05:00', ['k1', 'k2']],
        ['2025-12-31T23:59:60Z', ['k0', 'k1', 'k2']],
        ['9999-12-31T23:59:59Z', []],
        ['1970-01-01T00:00:00Z', ['k0', 'k1', 'k2']],
      ]
      for (const [time, keys] of expected) expect(await since(time), time).toEqual(keys)
      const future = (await stand.get(`${CHANGES}?updatedSince=2999-01-01T00:00:00Z`)).body
      await driver.cycle([upsert('late', {})])
      expect((await stand.get(`${CHANGES}?cursor=${future.page.nextCursor}`)).body.data).toHaveLength(1)
      for (const time of [
        '',
        'now',
        '2026-01-01',
        '2026-01-01T00:00:01',
        '2026-01-01 00:00:01Z',
        '2026-01-01t00:00:01z',
        '2026-02-30T00:00:00Z',
        '2026-01-01T25:00:00Z',
        '2026-01-01T00:00:01+2',
        '1767225600',
        'infinity',
        '2026-01-01T00:00:01 02:00',
        '٢٠٢٦-01-01T00:00:00Z',
      ]) {
        for (const path of [CHANGES, LIST]) {
          const answer = await stand.get(`${path}?updatedSince=${encodeURIComponent(time)}`)
          expect([answer.status, answer.body.error], time).toEqual([400, 'INVALID_REQUEST'])
        }
      }
    })

    test('A11 a repeated request gets the same response', async () => {
      const stand = await filled(open, 8)
      const { body } = await stand.get(`${CHANGES}?limit=2`)
      const [one, two] = [
        await stand.get(`${CHANGES}?limit=3&cursor=${body.page.nextCursor}`),
        await stand.get(`${CHANGES}?limit=3&cursor=${body.page.nextCursor}`),
      ]
      expect(one.body.data).toEqual(two.body.data)
      expect(one.body.data).toHaveLength(3)
    })

    test('A30 A25 an interrupted consumer resumes, deletions included', async () => {
      const stand = await filled(open, 6)
      const replica = new Map<string, unknown>()
      const apply = (items: readonly Body[]): void =>
        items.forEach(
          ({ resourceId, action, snapshot }) =>
            void (action === 'deleted' ? replica.delete(resourceId) : replica.set(resourceId, snapshot)),
        )
      const first = await stand.get(`${CHANGES}?limit=4`)
      apply(first.body.data)
      const driver = await SyncDriver.acquire(stand.store, { sync: 'later' })
      await driver.cycle([remove('k1'), upsert('k2', { n: 20 })])
      await driver.cycle([remove('k5'), upsert('k7', { n: 7 })])
      apply(await follow(stand, `${CHANGES}?limit=2`, first.body.page.nextCursor))
      const rows = await stand.store.rows({ database: 'things', limit: 100 })
      expect([...replica].toSorted(([a], [b]) => (a < b ? -1 : 1))).toEqual(
        rows.map(({ key, text }) => [key, JSON.parse(text)]),
      )
      // The same by time, if the cursor is lost.
      const again = new Map(replica)
      apply(await follow(stand, `${CHANGES}?limit=2&updatedSince=${first.body.data[3].updatedAt}`))
      expect(replica).toEqual(again)
    })

    test('AX3 a cursor for more types than it can store is accepted with the same types, and rejected without them or with others', async () => {
      const stand = await ServerFixture.open(open)
      const driver = await stand.driver()
      const names = Array.from({ length: 120 }, (_, n) => `a_database_with_a_long_name_${n}`)
      await driver.cycle(names.map((database, n) => upsert(`k${n}`, { n }, { database })))
      const types = names.join(',')
      const seen: string[] = []
      for (let at = `${CHANGES}?types=${types}&limit=50`; ;) {
        const { status, body } = await stand.get(at)
        expect(status).toBe(200)
        seen.push(...body.data.map(({ resourceId }: Body) => resourceId))
        if (!body.page.hasMore) break
        at = `${CHANGES}?types=${types}&limit=50&cursor=${body.page.nextCursor}`
      }
      expect(seen.toSorted()).toEqual(names.map((_, n) => `k${n}`).toSorted())
      const { nextCursor } = (await stand.get(`${CHANGES}?types=${types}&limit=1`)).body.page
      expect(nextCursor.length).toBeLessThanOrEqual(512)
      const alone = await stand.get(`${CHANGES}?cursor=${nextCursor}`)
      expect([alone.status, alone.body.details, alone.body.message]).toEqual([
        400,
        { reason: 'cursor_filter' },
        expect.stringContaining('send the same `types`'),
      ])
      const other = await stand.get(`${CHANGES}?cursor=${nextCursor}&types=${names.slice(1).join(',')}`)
      expect([other.status, other.body.details]).toEqual([400, { reason: 'cursor_filter', restart: 'backfill' }])
    })

    test('A14 A21 AX3 a row has the singular of its database as type, or the declared one, and `types` accepts both names', async () => {
      const stand = await ServerFixture.open(open, { resourceTypes: { people: 'person' } })
      const driver = await stand.driver()
      await driver.cycle(
        ['entries', 'addresses', 'products', 'company', 'people', 'statuses', 'status'].map((database) =>
          upsert('k', {}, { database }),
        ),
      )
      for (const [type, database] of [
        ['entry', 'entries'],
        ['address', 'addresses'],
        ['product', 'products'],
        ['company', 'company'],
        ['person', 'people'],
        ['status', 'status'],
      ]) {
        for (const asked of [type, database]) {
          const { data, page } = (await stand.get(`${CHANGES}?types=${asked}`)).body
          expect([page.types, data.map((item: Body) => [item.resourceType, item.database])], asked).toEqual([
            [database],
            [[type, database]],
          ])
        }
      }
    })

    test('A page is bounded in bytes: it is short, has more, and the reader sees every row once', async () => {
      const stand = await ServerFixture.open(open)
      const driver = await stand.driver()
      const text = 'x'.repeat(3 * 1024 * 1024)
      for (let n = 0; n < 8; n++) await driver.cycle([upsert(`k${n}`, { text })])
      for (const path of [CHANGES, '/agents/v1/things']) {
        const sizes: number[] = []
        for (let at = `${path}?limit=200`; ;) {
          const { status, body } = await stand.get(at)
          expect(status).toBe(200)
          sizes.push(body.data.length)
          if (!body.page.hasMore) break
          at = `${path}?limit=200&cursor=${body.page.nextCursor}`
        }
        expect(sizes).toEqual([3, 3, 2])
      }
    })

    test('an unknown parameter is rejected by name, and a NUL character anywhere', async () => {
      const stand = await ServerFixture.open(open)
      const driver = await stand.driver()
      await driver.cycle([upsert('k', {})])
      const misspelt = await stand.get(`${CHANGES}?tpyes=things`)
      expect([misspelt.status, misspelt.body.message]).toEqual([
        400,
        expect.stringContaining('Unknown parameter `tpyes`.'),
      ])
      for (const path of ['/agents/v1/things/k?y=1', '/agents/v1/capabilities?z=1', '/agents/v1/schema?a=1'])
        expect((await stand.get(path)).status, path).toBe(400)
      for (const path of [
        '/agents/v1/thi%00ngs',
        '/agents/v1/things/k%00',
        `${CHANGES}?types=%00`,
        `${CHANGES}?fields=a%00b`,
      ]) {
        expect((await stand.get(path)).status, path).toBe(400)
      }
      const body = JSON.stringify({ resourceType: 'a\0b' })
      expect(
        (
          await stand.post('/agents/v1/sync-state/checkpoint', {
            body,
            headers: { 'content-type': 'application/json' },
          })
        ).status,
      ).toBe(400)
    })

    test('AX3 XF3 a cursor keeps its types: absent or the same are accepted, others rejected; for unknown ones the available types are listed', async () => {
      const stand = await ServerFixture.open(open)
      const driver = await stand.driver()
      for (let n = 0; n < 6; n++)
        await driver.cycle([upsert(`k${n}`, { n }, { database: ['things', 'people', 'orders'][n % 3]! })])
      const { body } = await stand.get(`${CHANGES}?types=things,people&limit=1`)
      const at = `${CHANGES}?cursor=${body.page.nextCursor}`
      expect((await stand.get(at)).body.data.map(({ resourceType }: Body) => resourceType)).toEqual([
        'people',
        'thing',
        'people',
      ])
      expect((await stand.get(`${at}&types=people,things`)).status).toBe(200)
      expect(
        (await stand.get(`${CHANGES}?types=thing,things,order`)).body.data.map(({ database }: Body) => database),
      ).toEqual(['things', 'orders', 'things', 'orders'])
      expect((await stand.get(`${at}&types=people,thing`)).status).toBe(200)
      for (const types of ['things', 'things,people,orders']) {
        const refused = await stand.get(`${at}&types=${types}`)
        expect([refused.status, refused.body.details]).toEqual([400, { reason: 'cursor_filter', restart: 'backfill' }])
        expect(refused.body.message).toMatch(/types=people,things/)
      }
      const unfiltered = (await stand.get(`${CHANGES}?limit=1`)).body.page.nextCursor
      expect((await stand.get(`${CHANGES}?cursor=${unfiltered}&types=things`)).body.details.reason).toBe(
        'cursor_filter',
      )
      const unknown = await stand.get(`${CHANGES}?types=things,nobody`)
      expect([unknown.status, unknown.body.details.reason]).toEqual([400, 'type_unknown'])
      expect(unknown.body.message).toMatch(/orders, people, things/)
      expect((await stand.get(`${CHANGES}?types=`)).status).toBe(400)
    })

    test('AX2 XF7 a limit out of range is rejected the same everywhere', async () => {
      const stand = await filled(open, 60)
      for (const path of [CHANGES, LIST]) {
        for (const limit of ['0', '-1', '201', '1e9', '10abc', '', '1.5', 'NaN', '٣'])
          expect([limit, (await stand.get(`${path}?limit=${limit}`)).status]).toEqual([limit, 400])
        expect((await stand.get(`${path}?limit=1&limit=2`)).status).toBe(400)
        expect((await stand.get(path)).body.data).toHaveLength(50)
        expect((await stand.get(`${path}?limit=200`)).body.data).toHaveLength(60)
      }
    })

    test('XF9 a reader at the head keeps its cursor, writes nothing, and may get 304', async () => {
      const stand = await filled(open, 3)
      for (const path of [CHANGES, LIST, `${CHANGES}?types=things`]) {
        const { body } = await stand.get(path)
        const at = `${path}${path.includes('?') ? '&' : '?'}cursor=${body.page.nextCursor}`
        const head = await stand.get(at)
        expect(head.body.page.nextCursor).toBe(body.page.nextCursor)
        stand.shift.ms += 3_600_000
        const spared = await stand.get(at, { headers: { 'if-none-match': head.headers.get('etag')! } })
        expect([spared.status, spared.text, spared.headers.get('cache-control')]).toEqual([304, '', 'no-store'])
      }
      expect(await stand.store.headSequence()).toBe(3)
    })

    test('a long poll waits for the next change and no longer', async () => {
      const stand = await filled(open, 1)
      const { body } = await stand.get(CHANGES)
      const waiting = stand.get(`${CHANGES}?wait=30&cursor=${body.page.nextCursor}`)
      await (await SyncDriver.acquire(stand.store, { sync: 'later' })).cycle([upsert('new', {})])
      expect((await waiting).body.data.map(({ resourceId }: Body) => resourceId)).toEqual(['new'])
      const empty = await stand.get(`${CHANGES}?wait=1&cursor=${(await waiting).body.page.nextCursor}`)
      expect([empty.status, empty.body.data]).toEqual([200, []])
      expect((await stand.get(`${CHANGES}?wait=61`)).status).toBe(400)
    })

    test('a stream sends the same changes, and resumes after the last received event', async () => {
      const stand = await filled(open, 3)
      const first = await Stream.open(stand, CHANGES)
      const heard = await first.take(2)
      expect(heard.map(({ data }) => data.resourceId)).toEqual(['k0', 'k1'])
      first.close()
      await (await SyncDriver.acquire(stand.store, { sync: 'later' })).cycle([remove('k0')])
      const second = await Stream.open(stand, `${CHANGES}?updatedSince=1970-01-01T00:00:00Z`, {
        'last-event-id': heard[1]!.id,
      })
      expect((await second.take(2)).map(({ data }) => [data.resourceId, data.action])).toEqual([
        ['k2', 'created'],
        ['k0', 'deleted'],
      ])
      const cursor = (await stand.get(`${CHANGES}?cursor=${heard[1]!.id}`)).body.data
      expect(cursor).toHaveLength(2)
      const driver = await SyncDriver.acquire(stand.store, { sync: 'live' })
      await driver.cycle([upsert('live', { n: 1 })])
      expect((await second.take(1))[0]!.data).toMatchObject({ resourceId: 'live', snapshot: { n: 1 } })
      second.close()
      expect(
        (await stand.get(CHANGES, { headers: { accept: 'text/event-stream', 'last-event-id': 'nonsense' } })).status,
      ).toBe(400)
    })

    test('A29 A3 unknown fields are ignored, and the API is read-only', async () => {
      const stand = await filled(open, 2)
      expect((await stand.get(`${LIST}?colour=blue&lastDays=3`)).body.data).toHaveLength(2)
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        for (const path of [LIST, CHANGES, `${LIST}/k0`]) {
          const answer = await stand.get(path, { method })
          expect([answer.status, answer.body.error, answer.headers.get('allow')]).toEqual([
            405,
            'METHOD_NOT_ALLOWED',
            'GET, HEAD',
          ])
        }
      }
      const head = await stand.get(LIST, { method: 'HEAD' })
      expect([head.status, head.text]).toEqual([200, ''])
      expect(await stand.store.headSequence()).toBe(2)
    })

    // ── cursors ──────────────────────────────────────────────────────────────────────────────────────────────────────
    test('A7 Z25 XF2 a modified, truncated or forged cursor is rejected, always with the same message', async () => {
      const stand = await filled(open, 3)
      const cursor: string = (await stand.get(`${CHANGES}?limit=1`)).body.page.nextCursor
      expect(cursor.length).toBeLessThanOrEqual(512)
      const bytes = Buffer.from(cursor, 'base64url')
      expect(bytes.toString('latin1')).not.toMatch(/things|changes|\d{6}/)
      const forged = Array.from({ length: bytes.length * 8 }, (_, bit) => {
        const copy = Buffer.from(bytes)
        copy[bit >> 3]! ^= 1 << (bit & 7)
        return copy.toString('base64url')
      })
      const others = [
        cursor.slice(0, -1),
        cursor.slice(1),
        `${cursor}A`,
        `${cursor}=`,
        'x',
        '-',
        'A'.repeat(40),
        cursor.toUpperCase(),
        '%00',
        encodeURIComponent('{"v":1}'),
        cursor + cursor,
      ]
      const bodies = new Set<string>()
      for (const one of [...forged, ...others]) {
        const { status, body } = await stand.get(`${CHANGES}?cursor=${one}`)
        expect(status).toBe(400)
        bodies.add(JSON.stringify({ ...body, requestId: '' }))
      }
      expect([...bodies]).toHaveLength(1)
      expect([...bodies][0]).toMatch(/cursor_invalid.*updatedSince/)
    })

    test("Z26 XF14 another tenant's cursor is as invalid as random text, and its key sees none of our data", async () => {
      const stand = await filled(open, 3)
      const other = stand.store.forTenant('acme')
      const key = await addKey(other, ['*:read', 'admin'])
      const ours = (await stand.get(`${CHANGES}?limit=1`)).body.page.nextCursor
      const foreign = await stand.get(`${CHANGES}?cursor=${ours}`, { key })
      const nonsense = await stand.get(`${CHANGES}?cursor=nonsense`, { key })
      expect({ ...foreign.body, requestId: '' }).toEqual({ ...nonsense.body, requestId: '' })
      expect((await stand.get(CHANGES, { key })).body.data).toEqual([])
      expect([(await stand.get(LIST, { key })).status, (await stand.get(`${LIST}/k0`, { key })).status]).toEqual([
        404, 404,
      ])
      for (const path of ['/api/syncs', '/api/cycles', '/api/databases', '/api/quarantine'])
        expect((await stand.get(path, { key })).body.data).toEqual([])
      expect((await stand.post('/api/syncs/crm/delta/pause', { key })).status).toBe(404)
      expect((await stand.get('/agents/v1/capabilities', { key })).body).toMatchObject({
        tenant: 'acme',
        databases: [],
      })
      expect(await stand.store.readCheckpoint({ worker: 'crm', sync: 'delta' })).toMatchObject({ paused: false })
      await (await SyncDriver.acquire(other)).cycle([upsert('theirs', {})])
      expect((await stand.get(CHANGES, { key })).body.data.map(({ resourceId }: Body) => resourceId)).toEqual([
        'theirs',
      ])
      expect((await stand.get(`${LIST}/theirs`)).status).toBe(404)
    })

    test('Z26 F16 a cursor of one endpoint is rejected by another, with the endpoint it belongs to', async () => {
      const stand = await ServerFixture.open(open)
      await (await stand.driver()).cycle([upsert('a', {}), upsert('b', {}, { database: 'people' })])
      const [list, changes] = [
        (await stand.get(LIST)).body.page.nextCursor,
        (await stand.get(CHANGES)).body.page.nextCursor,
      ]
      for (const [path, cursor, where] of [
        [CHANGES, list, 'things'],
        [LIST, changes, 'changes'],
        ['/agents/v1/people', list, 'things'],
      ] as const) {
        const { status, body } = await stand.get(`${path}?cursor=${cursor}`)
        expect([status, body.error, body.details.reason]).toEqual([400, 'INVALID_REQUEST', 'cursor_misplaced'])
        expect(body.message).toContain(`/agents/v1/${where}`)
      }
    })

    test('A8 AX1 XF4 Z27 F16 a cursor lives for seven days, then names the recovery, which works', async () => {
      const stand = await filled(open, 4)
      for (const path of [CHANGES, LIST]) {
        const first = await stand.get(`${path}?limit=2`)
        const at = `${path}?cursor=${first.body.page.nextCursor}`
        stand.shift.ms = 7 * 86_400_000 - 120_000
        expect((await stand.get(at)).status).toBe(200)
        stand.shift.ms = 7 * 86_400_000 + 1_000
        const { status, body } = await stand.get(at)
        expect([status, body.error, body.details]).toEqual([
          400,
          'INVALID_REQUEST',
          { reason: 'cursor_expired', restart: 'updatedSince' },
        ])
        expect(body.message).toMatch(/7 days.*`updatedSince`/)
        expect(
          (await stand.get(`${path}?updatedSince=${first.body.data[1].updatedAt}`)).body.data.length,
        ).toBeGreaterThanOrEqual(2)
        stand.shift.ms = 0
      }
    })

    test('XE13 Z27 a cursor before the compacted range is rejected; one after it, a list and a new reader continue', async () => {
      const stand = await filled(open, 4)
      const driver = await SyncDriver.acquire(stand.store, { sync: 'later' })
      const [behind, list] = [
        (await stand.get(`${CHANGES}?limit=2`)).body.page.nextCursor,
        (await stand.get(`${LIST}?limit=2`)).body.page.nextCursor,
      ]
      const { updatedAt } = (await stand.get(CHANGES)).body.data[0]
      await driver.cycle([remove('k0'), upsert('k1', { n: 11 })])
      const above = (await stand.get(CHANGES)).body.page.nextCursor
      await stand.store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 })
      const refused = await stand.get(`${CHANGES}?cursor=${behind}`)
      expect([refused.status, refused.body.details]).toEqual([400, { reason: 'cursor_expired', restart: 'backfill' }])
      const tooEarly = await stand.get(`${CHANGES}?updatedSince=${updatedAt}`)
      expect([tooEarly.status, tooEarly.body.details]).toEqual([400, { reason: 'time_expired', restart: 'backfill' }])
      await driver.cycle([upsert('k9', { n: 9 })])
      expect(
        (await stand.get(`${CHANGES}?cursor=${above}`)).body.data.map(({ resourceId }: Body) => resourceId),
      ).toEqual(['k9'])
      expect(ids(await stand.get(`${LIST}?cursor=${list}`))).toEqual(['k2', 'k3', 'k1', 'k9'])
      const newcomer = await follow(stand, `${CHANGES}?limit=1`)
      expect(newcomer.map(({ resourceId, snapshot }) => [resourceId, snapshot])).toEqual([
        ['k2', { n: 2 }],
        ['k3', { n: 3 }],
        ['k1', { n: 11 }],
        ['k9', { n: 9 }],
      ])
      // The log is compacted again during the read: rows that were already read may be deleted in the lost part.
      const amid = (await stand.get(`${CHANGES}?limit=1`)).body.page.nextCursor
      await driver.cycle([remove('k2')])
      await stand.store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 })
      expect((await stand.get(`${CHANGES}?cursor=${amid}`)).body.details.reason).toBe('cursor_expired')
    })

    test('XA16 XA17 a restored store rejects the cursors of its lost future, also after it has overtaken them', async () => {
      const stand = await filled(open, 4)
      const cursors = [
        (await stand.get(CHANGES)).body.page.nextCursor as string,
        (await stand.get(`${CHANGES}?types=things`)).body.page.nextCursor as string,
      ]
      const list = (await stand.get(LIST)).body.page.nextCursor
      const secret = await stand.store.cursorSecrets(NO_OFFER)
      // The backup: the same store with the same secrets, two changes earlier.
      const restored = await ServerFixture.open(open)
      await restored.store.cursorSecrets({ ...NO_OFFER, ...secret[0]! })
      const driver = await restored.driver()
      await driver.cycle([upsert('k0', { n: 0 }), upsert('k1', { n: 1 })])
      const expired = { reason: 'cursor_expired', restart: 'backfill' }
      for (let n = 2; n < 8; n++) {
        for (const cursor of cursors) {
          const { status, body } = await restored.get(`${CHANGES}?cursor=${cursor}`)
          expect([status, body.details]).toEqual([400, expired])
          expect(body.message).toMatch(/restored/)
        }
        expect((await restored.get(`${LIST}?cursor=${list}`)).body.details).toEqual(expired)
        await driver.cycle([upsert(`k${n}`, { n: -n })], { at: START + 999 })
      }
    })

    test('Z28 cursors survive the rotation of the secret, also by another process', async () => {
      const stand = await filled(open, 3)
      const { nextCursor } = (await stand.get(`${CHANGES}?limit=1`)).body.page
      const now = Date.now()
      await stand.store.cursorSecrets({
        secret: 'ab'.repeat(32),
        createdAt: now + 31 * 86_400_000,
        rotateAfterMs: 30 * 86_400_000,
        retainMs: 8 * 86_400_000,
      })
      expect((await stand.get(`${CHANGES}?cursor=${nextCursor}`)).status).toBe(200)
      stand.shift.ms = 3_600_000
      const renewed = (await stand.get(`${CHANGES}?limit=1`)).body.page.nextCursor
      expect(renewed).not.toBe(nextCursor)
      for (const cursor of [nextCursor, renewed])
        expect((await stand.get(`${CHANGES}?cursor=${cursor}`)).status).toBe(200)
    })

    test('AD4 a rare type in a long log is found in short pages with hasMore', async () => {
      const stand = await ServerFixture.open(open)
      const driver = await stand.driver()
      await driver.cycle([
        upsert('first', {}, { database: 'rare' }),
        ...Array.from({ length: 3_000 }, (_, n) => upsert(`k${n}`, { n })),
      ])
      await driver.cycle([upsert('last', {}, { database: 'rare' })])
      expect((await follow(stand, `${CHANGES}?types=rare&limit=1`)).map(({ resourceId }) => resourceId)).toEqual([
        'first',
        'last',
      ])
      expect((await follow(stand, '/agents/v1/rare?limit=1')).map(({ id }) => id)).toEqual(['first', 'last'])
    })
  })
}

const NO_OFFER = { secret: 'cd'.repeat(32), createdAt: START, rotateAfterMs: 1e12, retainMs: 1e12 }

/** With k0 to k(n−1), each in a commit of its own. */
async function filled(open: OpenHarness, count: number): Promise<ServerFixture> {
  const stand = await ServerFixture.open(open)
  const driver = await stand.driver()
  for (let n = 0; n < count; n++) await driver.cycle([upsert(`k${n}`, { n })])
  await driver.release()
  return stand
}

function ids({ body }: Answer): string[] {
  return body.data.map(({ id }: Body) => id)
}

/** Reads every item from here to the end. */
export async function follow(stand: ServerFixture, path: string, from?: string): Promise<Body[]> {
  const items: Body[] = []
  for (let cursor = from, more = true; more;) {
    const { status, body, text } = await stand.get(cursor === undefined ? path : `${path}&cursor=${cursor}`)
    expect(status, text).toBe(200)
    items.push(...body.data)
    cursor = body.page.nextCursor
    more = body.page.hasMore
  }
  return items
}

export interface StreamEvent {
  readonly id: string
  readonly event: string
  readonly data: Body
}

/** A reader of server-sent events. */
export class Stream {
  readonly #abort: AbortController
  readonly #events: AsyncGenerator<StreamEvent>
  lastId = ''

  private constructor(response: Response, abort: AbortController) {
    this.#abort = abort
    this.#events = this.#read(response)
  }

  static async open(
    stand: ServerFixture,
    path: string,
    headers: Record<string, string> = {},
    key = stand.key,
  ): Promise<Stream> {
    const abort = new AbortController()
    const response = await fetch(`${stand.url}${path}`, {
      headers: { authorization: `Bearer ${key}`, accept: 'text/event-stream', ...headers },
      signal: abort.signal,
    })
    expect([response.status, response.headers.get('content-type'), response.headers.get('cache-control')]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
      'no-store',
    ])
    return new Stream(response, abort)
  }

  async take(count: number): Promise<StreamEvent[]> {
    const taken: StreamEvent[] = []
    while (taken.length < count) {
      const { value, done } = await this.#events.next()
      if (done === true) throw new Error('the stream ended')
      taken.push(value)
    }
    return taken
  }

  next(): Promise<IteratorResult<StreamEvent>> {
    return this.#events.next()
  }

  close(): void {
    this.#abort.abort()
  }

  async *#read(response: Response): AsyncGenerator<StreamEvent> {
    let buffer = ''
    const decoder = new TextDecoder()
    try {
      for await (const piece of response.body!) {
        buffer += decoder.decode(piece as Uint8Array, { stream: true })
        for (let end = buffer.indexOf('\n\n'); end >= 0; end = buffer.indexOf('\n\n')) {
          const fields = Object.fromEntries(
            buffer
              .slice(0, end)
              .split('\n')
              .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
          )
          buffer = buffer.slice(end + 2)
          this.lastId = fields['id'] ?? this.lastId
          if (fields['data'] !== undefined)
            yield { id: fields['id'] ?? '', event: fields['event'] ?? '', data: JSON.parse(fields['data']) as Body }
        }
      }
    } catch (error) {
      if (!this.#abort.signal.aborted) throw error
    }
  }
}
