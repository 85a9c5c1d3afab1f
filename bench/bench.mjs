import { fork, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createJiti } from 'jiti'
import pg from 'pg'

export const HERE = dirname(fileURLToPath(import.meta.url))

/** The sizes of a run, and the files, servers and processes that its cases use. */
export class Bench {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-bench-'))
  #server = null
  #files = 0

  constructor({ sizes, say, postgresUrl }) {
    Object.assign(this, { sizes, say, postgresUrl })
  }

  /** A new SQLite file or PostgreSQL database, gone afterwards. */
  async store(kind, act) {
    return kind === 'sqlite' ? act(`sqlite:${this.file('store.db')}`) : this.withDatabase(act)
  }

  file(name) {
    return join(this.folder, `${++this.#files}-${name}`)
  }

  async withDatabase(act) {
    const server = (this.postgresUrl ??= (this.#server = await startPostgres()).url)
    const name = `bench_${randomBytes(8).toString('hex')}`
    await query(server, `create database ${name}`)
    try {
      return await act(Object.assign(new URL(server), { pathname: `/${name}` }).href)
    } finally {
      // A private server is removed with all its databases.
      if (this.#server === null) await query(server, `drop database ${name} with (force)`)
    }
  }

  /** The last line that a program of bench/programs prints, as JSON. */
  async child(script, ...args) {
    const child = spawn(process.execPath, [join(HERE, 'programs', script), ...args.map(String)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (data) => (output += data))
    const [status, signal] = await new Promise((resolve) => child.once('close', (...ended) => resolve(ended)))
    if (status !== 0) throw new Error(`${script} ended with ${status ?? signal}`)
    return JSON.parse(output.trim().split('\n').at(-1))
  }

  /** A program that serves until `act` is done; its first line is JSON for `act`. */
  async withServer(script, args, act) {
    const stdio = ['ignore', 'pipe', 'inherit', 'ipc']
    const server = fork(join(HERE, 'programs', script), args.map(String), { stdio })
    const exited = new Promise((resolve) => server.once('exit', resolve))
    try {
      const line = new Promise((resolve) => server.stdout.once('data', (data) => resolve(String(data))))
      const first = await Promise.race([line, exited.then(() => null)])
      if (first === null) throw new Error(`${script} ended before it served`)
      return await act(JSON.parse(first))
    } finally {
      server.kill()
      await exited
    }
  }

  async close() {
    await this.#server?.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** A private server that writes through to the disk, as a server in production does. */
export async function startPostgres() {
  const setup = await createJiti(import.meta.url).import(join(HERE, '../test/setup/postgres-server.ts'))
  return setup.startPostgres({ fsync: true })
}

async function query(url, sql) {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return await client.query(sql)
  } finally {
    await client.end()
  }
}
