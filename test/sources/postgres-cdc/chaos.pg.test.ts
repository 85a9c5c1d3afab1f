import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { openStore } from '../../../src/stores/open-store.ts'
import type { JsonObject } from '../../../src/contract/index.ts'
import { parseJson } from '../../../src/values/json.ts'
import { buildPackage } from '../../process/build.ts'
import { Child, type ChildMessage } from '../../process/child.ts'
import { chance } from '../../process/children/world.mjs'
import { CdcFixture } from './cdc-fixture.ts'

// `npm run chaos:cdc` is the full size.
const CHANGES = Number(process.env['TIDEMARK_CDC_CHANGES'] ?? 4_000)
const KILLS = Number(process.env['TIDEMARK_CDC_KILLS'] ?? 4)
const SEED = Number(process.env['TIDEMARK_SEED'] ?? 1)

test.skipIf(inject('postgresUrl') === '')(
  'R42 R50 changes go on while the reader is killed again and again; what is landed equals the source',
  async () => {
    const random = chance(SEED)
    const [build, shop] = await Promise.all([buildPackage(), CdcFixture.open()])
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-chaos-'))
    const url = `sqlite:${join(folder, 'store.db')}`
    const start = (): Child =>
      new Child(build, 'run-cdc.mjs', {
        input: { url, source: shop.server.url, pageSize: CHANGES > 50_000 ? 500 : 100 },
      })
    try {
      await shop.exec(`create table orders (id int primary key, note text, price numeric, at timestamptz, big text); alter table orders alter big set storage external;
      create table lines (order_id int, line int, body jsonb, primary key (order_id, line));
      insert into orders select g, 'first', g / 7.0, now(), repeat(md5(g::text), 80) from generate_series(1, 2000) g`)
      const said: ChildMessage[] = []
      let child = start()
      let changes = 0
      let next = 2_001
      let kills = 0
      let insideCycle = 0
      while (changes < CHANGES || kills < KILLS) {
        changes += await change(shop, random, () => next++, CHANGES > 50_000 ? 400 : 60)
        if (changes >= ((kills + 1) * CHANGES) / (KILLS + 1) && kills < KILLS) {
          // Some die while they start, most of them at work, while the source goes on.
          if (random() < 0.2) await sleep(random() * 300)
          else {
            await child.until(['begun', 'landed', 'cycle'][Math.floor(random() * 3)]!)
            for (let more = Math.floor(random() * 6); more > 0; more--)
              changes += await change(shop, random, () => next++, 60)
          }
          const ended = await child.kill()
          said.push(...ended.said)
          if (['begun', 'landed'].includes(ended.said.at(-1)?.event ?? '')) insideCycle++
          kills++
          child = start()
        }
      }
      await child.until('open')
      child.tell('stop')
      const { code, said: last, stderr } = await child.ended
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      said.push(...last)
      // No position was ever refused, and no place in the log was lost.
      expect(
        said
          .filter(({ error }) => error !== null && error !== undefined)
          .map(({ error }) => (error as { code: string }).code)
          .filter((code) => code !== 'SOURCE_UNAVAILABLE' && code !== 'HISTORY_LOST'),
      ).toEqual([])
      expect(
        said.filter(
          ({ event, error }) =>
            event === 'cycle' &&
            (error as { message?: string } | null)?.message?.includes('no longer available') === true,
        ),
      ).toEqual([])

      const store = await openStore(url)
      for (const [table, key] of [
        ['orders', 'id'],
        ['lines', 'json_build_array(order_id::text, line::text)::text'],
      ] as const) {
        const landed = new Map<string, JsonObject>()
        for (let after: string | undefined; ;) {
          const rows = await store.rows({ database: table, limit: 10_000, ...(after !== undefined && { after }) })
          for (const row of rows) landed.set(row.key, parseJson(row.text) as JsonObject)
          if (rows.length < 10_000) break
          after = rows.at(-1)!.key
        }
        const { rows } = await shop.client.query<{ key: string; row: string }>(
          `select (${key})::text as key, (jsonb_build_object(${
            table === 'orders'
              ? "'id', id, 'note', note, 'price', price::text, 'at', to_char(at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US'), 'big', big"
              : "'order_id', order_id, 'line', line, 'body', body"
          }))::text as row from ${table}`,
        )
        expect(landed.size).toBe(rows.length)
        const differing = rows.filter(({ key: id, row }) => {
          const record = landed.get(id.replaceAll(', ', ','))
          if (record === undefined) return true
          const at = record['at']
          const shown =
            typeof at === 'string'
              ? {
                  ...record,
                  at: `${at.slice(0, -1).split('.')[0]}.${(at.slice(0, -1).split('.')[1] ?? '').padEnd(6, '0')}`,
                }
              : record
          return JSON.stringify(sorted(shown)) !== JSON.stringify(sorted(JSON.parse(row) as JsonObject))
        })
        expect(differing.map(({ key: id }) => id)).toEqual([])
      }
      await store.close()
      console.info(
        `${changes} row changes, ${kills} kills, ${insideCycle} of them inside a cycle, ${said.filter(({ event }) => event === 'cycle').length} cycles, seed ${SEED}`,
      )
      expect(kills).toBe(KILLS)
    } finally {
      await shop.close()
      build.remove()
      rmSync(folder, { recursive: true, force: true })
    }
  },
  1_800_000,
)

/** One transaction of a shop; how many rows it changed. */
async function change(shop: CdcFixture, random: () => number, next: () => number, size: number): Promise<number> {
  const count = 1 + Math.floor(random() * size)
  const from = Math.floor(random() * 3_000)
  const kind = random()
  const run = async (sql: string): Promise<number> => (await shop.client.query(sql)).rowCount ?? 0
  if (kind < 0.3) {
    const first = next()
    for (let n = 1; n < count; n++) next()
    return run(
      `insert into orders select g, 'new ' || g, g / 3.0, clock_timestamp(), repeat(md5(g::text), 80) from generate_series(${first}, ${first + count - 1}) g`,
    )
  }
  if (kind < 0.6)
    return run(
      `update orders set note = note || '.', price = price + 0.01 where id between ${from} and ${from + count}`,
    )
  if (kind < 0.7) return run(`delete from orders where id between ${from} and ${from + Math.floor(count / 4)}`)
  if (kind < 0.75)
    return run(
      `update orders set id = ${next()} where id = (select id from orders where id >= ${from} order by id limit 1)`,
    )
  if (kind < 0.85)
    return run(
      `update orders set big = repeat(md5(random()::text), 80), at = clock_timestamp() where id between ${from} and ${from + Math.floor(count / 8)}`,
    )
  if (kind < 0.95)
    return run(
      `insert into lines select ${from}, g, jsonb_build_object('n', g, 's', md5(g::text)) from generate_series(1, ${count}) g on conflict (order_id, line) do update set body = jsonb_build_object('again', lines.body)`,
    )
  // Several statements of one transaction; the last is undone.
  await shop.exec(
    `begin; update lines set body = '{"all": true}' where order_id between ${from} and ${from + 10}; savepoint s; delete from lines; rollback to s; delete from lines where order_id = ${from}; commit`,
  )
  return 1
}

function sorted(value: JsonObject): unknown {
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [
        name,
        typeof member === 'object' && member !== null && !Array.isArray(member) ? sorted(member) : member,
      ]),
  )
}
