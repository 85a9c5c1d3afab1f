import pg from 'pg'
import {
  postgresCdc,
  type PostgresCdcOptions,
  type PostgresCdcSource,
} from '../../../src/sources/postgres-cdc/source.ts'
import { startPostgres, type PostgresServer } from '../../setup/postgres-server.ts'

/** A server that writes its log for readers, and a way in for the test. */
export class CdcFixture {
  readonly server: PostgresServer
  readonly client: pg.Client
  #slots = 0

  private constructor(server: PostgresServer, client: pg.Client) {
    this.server = server
    this.client = client
  }

  static async open(settings: Readonly<Record<string, string>> = {}): Promise<CdcFixture> {
    const server = await startPostgres({ settings: { wal_level: 'logical', max_replication_slots: '40', ...settings } })
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    return new CdcFixture(server, client)
  }

  async exec(sql: string): Promise<void> {
    await this.client.query(sql)
  }

  /** A slot and a publication of its own. */
  names(): { slot: string; publication: string } {
    const slot = `slot_${++this.#slots}`
    return { slot, publication: slot }
  }

  source(options: Partial<PostgresCdcOptions> & Pick<PostgresCdcOptions, 'tables'>): PostgresCdcSource {
    return postgresCdc({ url: this.server.url, ...this.names(), ...options })
  }

  async confirmed(slot: string): Promise<string> {
    return (
      await this.client.query<{ lsn: string }>(
        'select confirmed_flush_lsn::text as lsn from pg_replication_slots where slot_name = $1',
        [slot],
      )
    ).rows[0]!.lsn
  }

  async close(): Promise<void> {
    await this.client.end()
    await this.server.stop()
  }
}
