import type { Consumer } from '../../contract/index.ts'

/** A row of the table, as both stores read it. */
export interface ConsumerRow {
  owner: string
  name: string
  resource: string
  databases: string | null
  sequence: number
  cursor: string | null
  checkpoint_at: number
  reported_at: number
  metadata: string | null
}

export function toConsumer(row: ConsumerRow): Consumer {
  return {
    owner: row.owner, name: row.name, resource: row.resource, databases: row.databases === null ? null : (JSON.parse(row.databases) as string[]), sequence: row.sequence,
    cursor: row.cursor, checkpointAt: row.checkpoint_at, reportedAt: row.reported_at, metadata: row.metadata,
  }
}

/** In the order of the columns above. */
export function consumerValues({ owner, name, resource, databases, sequence, cursor, checkpointAt, reportedAt, metadata }: Consumer): Array<string | number | null> {
  return [owner, name, resource, databases === null ? null : JSON.stringify(databases), sequence, cursor, checkpointAt, reportedAt, metadata]
}
