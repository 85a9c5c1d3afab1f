import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'
import { createSqliteReceiver } from '../../examples/http-receiver/receiver.ts'
import { http, type HttpDestinationOptions } from '../../src/destinations/http/destination.ts'
import { toNodeListener } from '../../src/destinations/http/receiver.ts'
import type { DestinationHarness, StoredRow } from '../../src/testing/destination-cases/harness.ts'
import { parseJson } from '../../src/values/json.ts'

export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

export interface HttpHarness extends DestinationHarness {
  readonly url: string
  /** Answers the next requests itself; null lets them pass to the receiver. */
  respond(answer: ((body: string) => Response | null) | null): void
  /** The bodies of all requests. */
  readonly bodies: string[]
}

/** The receiver of the example, behind a server of Node.js on this machine. */
export async function openHttpHarness(options: Partial<HttpDestinationOptions> = {}): Promise<HttpHarness> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-receiver-'))
  const faults = new Faults()
  let db = openDatabase(join(folder, 'copy.db'))
  let restored = 0
  let answer: ((body: string) => Response | null) | null = null
  const bodies: string[] = []
  const receiver = { handle: createSqliteReceiver(faults.watch(db), SECRET) }
  const server = createServer((incoming, outgoing) => {
    const listen = toNodeListener(async (request) => {
      const body = await request.clone().text()
      bodies.push(body)
      const given = answer?.(body) ?? null
      if (given !== null) return given
      faults.step(incoming.socket)
      const response = await receiver.handle(request)
      faults.end(incoming.socket, body.startsWith('{"kind":"batch"') && response.status === 200)
      return response
    })
    listen(incoming, outgoing)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/copy?token=t`
  return {
    url,
    bodies,
    respond: (given) => void (answer = given),
    destination: http({ url, secret: SECRET, ...options }),
    rows: async (database) => readRows(db, database),
    interrupt: (fault) => faults.plan(fault),
    async backUp() {
      const copy = join(folder, 'backup.db')
      db.exec(`vacuum into '${copy}'`)
      return async () => {
        db.close()
        const file = join(folder, `restored-${restored++}.db`)
        copyFileSync(copy, file)
        db = openDatabase(file)
        receiver.handle = createSqliteReceiver(faults.watch(db), SECRET)
      }
    },
    close: async () => {
      await closeServer(server)
      db.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A power cut is not part of these tests. */
function openDatabase(file: string): DatabaseSyncInstance {
  const db = new DatabaseSync(file)
  db.exec('pragma synchronous = off; pragma journal_mode = memory')
  return db
}

export async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

export function readRows(db: DatabaseSyncInstance, database: string): StoredRow[] {
  const [table] = db.prepare('select sql from sqlite_master where name = ?').all(database) as Array<{ sql: string }>
  if (table === undefined) return []
  const isAppend = table.sql.includes('primary key (sequence)')
  const rows = db.prepare(`select * from "${database}" order by sequence`).all() as Array<{
    key: string
    sequence: number
    action: string
    record: string | null
  }>
  return rows.map(({ key, sequence, action, record }) => ({
    key,
    sequence,
    ...(isAppend && { action }),
    record: record === null ? null : (parseJson(record) as StoredRow['record']),
  }))
}

/** Breaks the connection before a request is handled, between two statements of the receiver, or after its commit. */
class Faults {
  #fault: { left: number } | 'commit' | null = null
  #happened = false

  plan(fault: { readonly statement: number } | 'commit'): () => boolean {
    this.#happened = false
    this.#fault = fault === 'commit' ? fault : { left: fault.statement }
    return () => {
      this.#fault = null
      return this.#happened
    }
  }

  step(socket?: Socket): void {
    if (this.#fault === null || this.#fault === 'commit' || this.#fault.left-- > 0) return
    this.#fail(socket)
    throw new Error('The receiver was interrupted.')
  }

  end(socket: Socket, isApplied: boolean): void {
    if (this.#fault === 'commit' && isApplied) this.#fail(socket)
  }

  #fail(socket?: Socket): void {
    this.#fault = null
    this.#happened = true
    socket?.destroy()
  }

  /** Every statement except a rollback can be interrupted before it runs. */
  watch(db: DatabaseSyncInstance): DatabaseSyncInstance {
    const step = (): void => this.step()
    return new Proxy(db, {
      get(target, name) {
        if (name === 'exec')
          return (sql: string) => {
            if (sql !== 'rollback') step()
            target.exec(sql)
          }
        if (name === 'prepare')
          return (sql: string) => {
            step()
            return target.prepare(sql)
          }
        return Reflect.get(target, name, target) as unknown
      },
    })
  }
}
