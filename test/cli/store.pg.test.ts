import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, inject, test } from 'vitest'
import { Project } from './project.ts'

const server = inject('postgresUrl')

describe.skipIf(server === '')('on PostgreSQL', () => {
  test('F.2-15 preview and status leave an empty database empty; run fills it, query reads it and cannot write', async () => {
    const { url, relations } = await freshDatabase()
    const project = Project.withWorker()
    project.write('.env', `TIDEMARK_STORE=${url}\n`)
    expect(await project.ask('preview', 'people-list')).toMatchObject({ code: 0 })
    expect(await project.ask('status')).toMatchObject({ code: 0 })
    // Z5: without a key nothing is begun, and nothing made.
    expect(await project.ask('run')).toMatchObject({ code: 3, stderr: expect.stringContaining('KEYS_MISSING') })
    expect(await relations()).toEqual([])

    project.write('.env', `TIDEMARK_STORE=${url}\nTIDEMARK_KEY=${randomBytes(32).toString('base64')}\n`)
    expect(await project.json('run')).toMatchObject({ ok: true })
    expect(await project.json('query', 'select name from people order by id', '--limit', '2')).toMatchObject({
      rows: [{ name: 'Person 1' }, { name: 'Person 2' }],
      truncated: true,
    })
    expect(await project.json('status')).toMatchObject({
      syncs: [{ health: 'HEALTHY' }, { health: 'HEALTHY', tidemark: '2026-01-01T00:00:00.000000Z' }],
    })
    for (const sql of [
      'with x as (delete from tidemark.commits returning 1) select * from x',
      'select 1; drop table tidemark.commits',
      'select 1; commit; drop table tidemark.commits',
    ]) {
      expect((await project.ask('query', sql)).code).toBe(2)
    }
    expect(await project.json('query', 'select count(*) as n from people')).toMatchObject({ rows: [{ n: 5 }] })
    for (const format of ['ndjson', 'csv', 'parquet'])
      expect(await project.json('export', 'people', '--to', `people.${format}`)).toMatchObject({
        rows: 5,
        file: `people.${format}`,
      })
    expect(
      readFileSync(join(project.folder, 'people.ndjson'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { record: { name: string } }).record.name),
    ).toEqual(['Person 1', 'Person 2', 'Person 3', 'Person 4', 'Person 5'])
    expect(await project.json('export', 'log', '--to', 'log.ndjson', '--since-last')).toMatchObject({ rows: 6 })
    expect(await project.json('export', 'log', '--to', 'log.ndjson', '--since-last')).toMatchObject({
      rows: 0,
      file: null,
    })
    expect(await project.json('state', 'reset', 'room-changes', '--reason', 'a test', '--yes')).toMatchObject({
      version: 2,
    })
    expect((await project.ask('run')).stderr).toContain('npx tidemark query "select * from public.people limit 5"')
  })
})

async function freshDatabase(): Promise<{ url: string; relations: () => Promise<string[]> }> {
  const name = `cli_${randomUUID().replaceAll('-', '')}`
  const admin = new pg.Client(server)
  await admin.connect()
  await admin.query(`create database ${name}`)
  await admin.end()
  const url = new URL(server)
  url.pathname = `/${name}`
  const relations = async (): Promise<string[]> => {
    const client = new pg.Client(url.href)
    await client.connect()
    const { rows } = await client.query<{ name: string }>(
      "select relname as name from pg_class where relnamespace not in ('pg_catalog'::regnamespace, 'pg_toast'::regnamespace, 'information_schema'::regnamespace)",
    )
    await client.end()
    return rows.map((row) => row.name)
  }
  return { url: url.href, relations }
}
