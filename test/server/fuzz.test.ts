import { expect, test } from 'vitest'
import type { Ports } from '../../src/contract/index.ts'
import { HTTP_ERRORS } from '../../src/server/http-error.ts'
import type { Route } from '../../src/server/route.ts'
import { createServer, ROUTES } from '../../src/server/server.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { seededRandom, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { WEBHOOK } from './route-samples.ts'
import { addKey } from './server-fixture.ts'

const REQUESTS = Number(process.env['TIDEMARK_FUZZ_REQUESTS'] ?? 6_000)
const SEED = Number(process.env['TIDEMARK_FUZZ_SEED'] ?? 1)
const CANARY = 'canary-of-another-tenant'
const DOCUMENTED = new Set<number>([
  200,
  202,
  302,
  304,
  ...Object.values(HTTP_ERRORS)
    .map(({ status }) => status)
    .filter((status) => status < 500),
])

test(
  `XF2 XF14 A23 ${REQUESTS} hostile requests get only documented responses, and none from another tenant (seed ${SEED})`,
  { timeout: 1_800_000 },
  async () => {
    const random = seededRandom(SEED)
    const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!
    const store = await openSqliteStore({ file: ':memory:' })
    let now = Date.now()
    const failures: string[] = []
    const note = (message: string, fields?: object): void => void failures.push(JSON.stringify({ message, ...fields }))
    const ports: Ports = {
      // Waits take no time here and move the rate limit windows on.
      clock: {
        now: () => now,
        sleep: async (ms) => new Promise((resolve) => setImmediate(() => resolve(void (now += ms)))),
      },
      random: { next: random },
      log: { debug: () => {}, info: note, warn: note, error: note },
    }
    const { app, close } = createServer({ store, ports, version: '0.0.0' })
    await app.ready()
    const driver = await SyncDriver.acquire(store)
    for (let n = 0; n < 20; n++)
      await driver.cycle([upsert(`k${n}`, { n, text: '\u001b[31m\n' }), upsert(`k${n}`, { n }, { database: 'people' })])
    const other = store.forTenant('acme')
    await (await SyncDriver.acquire(other)).cycle([upsert(CANARY, { secret: CANARY })])
    await store.putWebhook({ ...WEBHOOK, allow: [] }, { sequence: 0, floor: 0 })
    const keys = [
      await addKey(store, ['*:read']),
      await addKey(store, ['admin']),
      await addKey(store, ['things:read']),
      await addKey(store, []),
    ]
    const cursors: string[] = ['x']
    const foreign = JSON.parse(
      (
        await app.inject({
          url: '/agents/v1/changes',
          headers: { authorization: `Bearer ${await addKey(other, ['*:read'])}` },
        })
      ).body,
    ).page.nextCursor as string

    const bytes = (): string =>
      Array.from({ length: Math.floor(random() * 40) }, () =>
        String.fromCodePoint(Math.floor(random() * (random() < 0.8 ? 0x7f : 0xd7ff))),
      ).join('')
    const mangled = (text: string): string => {
      const at = Math.floor(random() * text.length)
      return pick([
        text.slice(0, at),
        text.slice(at),
        `${text.slice(0, at)}${String.fromCodePoint(33 + Math.floor(random() * 90))}${text.slice(at + 1)}`,
        text + text,
        text.toUpperCase(),
      ])
    }
    const value = (): string =>
      pick([
        () =>
          pick([
            '0',
            '-1',
            '1',
            '50',
            '200',
            '201',
            '1e9',
            '10abc',
            'NaN',
            'null',
            'true',
            '',
            ' ',
            '9'.repeat(400),
            '1.5',
            '0x10',
          ]),
        () =>
          pick([
            '2026-01-01T00:00:00Z',
            '2026-01-01T00:00:00+14:00',
            '9999-12-31T23:59:60Z',
            '0000-00-00T00:00:00Z',
            '2026-13-01T00:00:00Z',
            '-271821-04-20T00:00:00Z',
          ]),
        () =>
          pick([
            'things',
            'people',
            'things,people',
            'nobody',
            "things' or 1=1 --",
            '__proto__',
            'constructor',
            '*',
            ',',
            '../../etc/passwd',
            CANARY,
            'acme',
          ]),
        () => pick(cursors),
        () => foreign,
        () => mangled(pick(cursors)),
        () => mangled(foreign),
        bytes,
        () => 'A'.repeat(Math.floor(random() * 6_000)),
        () => '%00',
        () => '${7*7}{{7*7}}',
        () => '\r\nx-evil: 1',
      ])()
    const encoded = (text: string): string =>
      random() < 0.9 ? encodeURIComponent(text.toWellFormed()) : text.replaceAll(/[\s#\u0000-\u001f\u007f-\uffff]/g, '')
    const path = (route: Route): string =>
      random() < 0.9
        ? route.path.replaceAll(/:(\w+)/g, (_, name: string) =>
            random() < 0.6
              ? (
                  {
                    database: pick(['things', 'people']),
                    key: `k${Math.floor(random() * 25)}`,
                    worker: 'crm',
                    sync: 'delta',
                    webhook: WEBHOOK.id,
                    destination: 'copy',
                  } as Record<string, string>
                )[name]!
              : encoded(value()),
          )
        : `/${encoded(value())}`
    const query = (): string => {
      const names = Array.from({ length: Math.floor(random() * 5) }, () =>
        pick([
          'cursor',
          'updatedSince',
          'limit',
          'types',
          'fields',
          'wait',
          'integrationKey',
          'resourceType',
          'limit[]',
          'cursor[a]',
          '__proto__',
          'x',
          bytes(),
        ]),
      )
      return names.length === 0 ? '' : `?${names.map((name) => `${encoded(name)}=${encoded(value())}`).join('&')}`
    }
    const members = [...new Set(ROUTES.flatMap((route) => Object.keys((route.body?.['properties'] ?? {}) as object)))]
    const body = (): object =>
      Object.fromEntries(
        Array.from({ length: Math.floor(random() * 4) }, () => [
          pick([...members, 'x']),
          pick([
            value,
            () => [value()],
            () => ({ [value()]: value() }),
            () => null,
            () => true,
            () => Math.floor(random() * 1e6) - 5e5,
            () => pick(['https://hooks.example.com/', 'https://127.0.0.1/', 'http://[::1]/']),
          ])(),
        ]),
      )
    const header = (): string => value().replaceAll(/[^\u0020-\u007e]/g, '')
    const headers = (): Record<string, string> => {
      const made: Record<string, string> =
        random() < 0.85 ? { authorization: `Bearer ${random() < 0.9 ? pick(keys) : mangled(pick(keys))}` } : {}
      for (let n = Math.floor(random() * 4); n > 0; n--)
        made[
          pick([
            'accept',
            'accept-encoding',
            'if-none-match',
            'last-event-id',
            'x-agents-token',
            'host',
            'origin',
            'content-type',
            'range',
            'x-forwarded-for',
            'x-http-method-override',
            'connection',
            'authorization',
            'x-request-id',
          ])
        ] = pick([
          header,
          () => pick(['gzip', 'br', '*', 'application/json', '*/*', 'identity;q=0', '"x"', 'W/"x", "y"', 'bytes=0-1']),
        ])()
      return made
    }

    const counts = new Map<number, number>()
    for (let n = 0; n < REQUESTS; n++) {
      now += 20
      const route = pick(ROUTES)
      const method =
        random() < 0.85 ? route.method : pick(['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD'] as const)
      // A URL that names another host cannot be sent this way.
      const url = (path(route) + query()).replace(/^\/[/\\]+/, '/')
      if (!URL.canParse(url, 'http://localhost')) continue
      const sent = headers()
      const payload =
        method === 'GET' || method === 'HEAD' || random() < 0.4
          ? undefined
          : pick([
              () => pick(['{', '{}', 'x'.repeat(70_000), '[]', '{"__proto__":1}', '']),
              () => JSON.stringify(body()),
            ])()
      if (payload !== undefined && random() < 0.8) sent['content-type'] = 'application/json'
      const answer = await app.inject({ method, url, headers: sent, ...(payload !== undefined && { payload }) })
      const told = `request ${n}: ${method} ${url.slice(0, 300)} ${JSON.stringify(sent).slice(0, 600)} → ${answer.statusCode} ${answer.body.slice(0, 300)}`
      counts.set(answer.statusCode, (counts.get(answer.statusCode) ?? 0) + 1)
      expect(DOCUMENTED.has(answer.statusCode), told).toBe(true)
      if (answer.statusCode >= 400 && method !== 'HEAD') {
        const body = JSON.parse(answer.body) as Record<string, unknown>
        expect(HTTP_ERRORS[body['error'] as keyof typeof HTTP_ERRORS]?.status, told).toBe(answer.statusCode)
        expect(body['requestId'], told).toBe(answer.headers['x-request-id'])
      } else if (answer.statusCode < 400) {
        // A response may repeat the caller's own text, but not data that only the other tenant has.
        expect(answer.body.includes(`"secret":"${CANARY}"`), told).toBe(false)
        const next = /"nextCursor":"([^"]+)"/.exec(answer.body)?.[1]
        if (next !== undefined && cursors.length < 200) cursors.push(next)
      }
    }
    expect(failures).toEqual([])
    // The requests reached the routes: not all were rejected early.
    for (const status of [200, 400, 401, 403, 404, 405])
      expect(counts.get(status) ?? 0, `answers with ${status}`).toBeGreaterThan(REQUESTS / 1_000)
    console.info(
      [...counts]
        .toSorted(([a], [b]) => a - b)
        .map(([status, count]) => `${status}: ${count}`)
        .join(', '),
    )
    await close()
    await store.close()
  },
)
