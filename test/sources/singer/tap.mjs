#!/usr/bin/env node
// A tap for tests: serves the file that its config names, by the Singer protocol, and misbehaves where that file says so.
import { appendFileSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

const args = process.argv.slice(2)
const valueOf = (flag) => (args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined)
const read = (path) => (path === undefined ? undefined : JSON.parse(readFileSync(path, 'utf8')))
const config = read(valueOf('--config'))
const world = read(config.world)
const catalogPath = valueOf('--catalog') ?? valueOf('--properties')
const files = [valueOf('--config'), valueOf('--state'), catalogPath].filter((path) => path !== undefined)
const mode = (path) => (statSync(path).mode & 0o777).toString(8)
const note = (seen) => appendFileSync(`${config.world}.seen`, `${JSON.stringify(seen)}\n`)
note({
  args: args.map((arg) => arg.replace(/.*\//, '')),
  pid: process.pid,
  folder: dirname(files[0]),
  modes: files.map(mode),
  folderMode: mode(dirname(files[0])),
  environment: Object.keys(process.env).toSorted(),
  state: valueOf('--state') === undefined ? null : readFileSync(valueOf('--state'), 'utf8'),
  config,
})

const say = (message) =>
  new Promise((done) =>
    process.stdout.write(typeof message === 'string' ? message : `${JSON.stringify(message)}\n`, done),
  )
const forever = () => new Promise(() => setInterval(() => {}, 1_000))
process.stderr.write(`INFO starting with ${config.api_key}\n`)
if (world.deaf) process.on('SIGTERM', () => note({ asked: 'SIGTERM' }))

if (args.includes('--discover')) {
  if (world.discover === 'fails') process.exit(7)
  const streams = Object.entries(world.streams).map(([stream, { key = ['id'], schema = { type: 'object' } }]) => ({
    tap_stream_id: stream,
    stream,
    schema,
    metadata: [
      {
        breadcrumb: [],
        metadata: { 'table-key-properties': key, 'valid-replication-keys': ['updated_at'], inclusion: 'available' },
      },
      { breadcrumb: ['properties', 'name'], metadata: { inclusion: 'available' } },
    ],
  }))
  await say(JSON.stringify({ streams }, null, 2))
  process.exit(0)
}

const chosen = read(catalogPath)?.streams.filter((stream) => stream.metadata[0].metadata.selected)
const state = { bookmarks: {}, ...read(valueOf('--state')) }
let told = 0
for (const [stream, { key = ['id'], schema = { type: 'object' }, rows }] of Object.entries(world.streams)) {
  const entry = chosen?.find((one) => one.tap_stream_id === stream)
  if (chosen !== undefined && entry === undefined) continue
  const isWhole = entry?.metadata[0].metadata['replication-method'] === 'FULL_TABLE'
  const since = isWhole ? '' : (state.bookmarks[stream]?.updated_at ?? '')
  if (!world.noSchema)
    await say({ type: 'SCHEMA', stream, schema, key_properties: key, bookmark_properties: ['updated_at'] })
  if (world.batch) await say({ type: 'BATCH', stream, encoding: { format: 'jsonl' }, manifest: ['file:///x'] })
  for (const row of rows.filter((one) => one.updated_at >= since)) {
    await say(
      typeof row.raw === 'string'
        ? row.raw
        : { type: 'RECORD', stream, record: row, time_extracted: '2026-01-01T00:00:00Z' },
    )
    if (row.updated_at !== undefined)
      state.bookmarks[stream] = { updated_at: row.updated_at, ...(row.big !== undefined && { since_id: 'BIG' }) }
    told++
    if (world.every !== undefined && told % world.every === 0)
      await say(`${JSON.stringify({ type: 'STATE', value: state }).replace('"BIG"', String(row.big))}\n`)
    if (told === world.crashAt) {
      process.stderr.write(`CRITICAL no route to host for ${config.api_key} at ${row.updated_at}\n`)
      await say('{"type":"RECORD","stream":"people","record":{"id":"ha')
      process.exit(3)
    }
    if (told === world.hangAt) await forever()
    if (world.slowMs !== undefined) await new Promise((done) => setTimeout(done, world.slowMs))
  }
  if (isWhole || world.version !== undefined)
    await say({ type: 'ACTIVATE_VERSION', stream, version: world.version ?? 1 })
}
if (!world.noState) await say({ type: 'STATE', value: state })
if (world.tail !== undefined) await say(world.tail)
