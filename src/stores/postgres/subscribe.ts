import { hash, randomUUID } from 'node:crypto'
import pg from 'pg'
import type { Listener, Subscription } from '../../contract/index.ts'
import type { ConnectionOptions, Transaction } from './connection.ts'

const CHANNEL = 'tidemark'
const HEARTBEAT_MS = 10_000
const RECONNECT_MS = 1_000

/**
 * Sent when the transaction commits. Not on every page: transactions that notify commit one after the other, whatever
 * their tenant.
 */
export function notify(transaction: Transaction, topic: 'tenant' | 'connections' = 'tenant'): void {
  transaction.send(`select pg_notify('${CHANNEL}', $1)`, topic === 'tenant' ? payloadFor(transaction.tenant) : topic)
}

/** Every role that may connect may listen, so the payload hides tenant names. */
function payloadFor(tenant: string): string {
  return hash('sha256', `tidemark ${tenant}`, 'hex').slice(0, 16)
}

/**
 * Uses a dedicated connection that reconnects when it breaks. It counts as connected while its own heartbeat comes
 * back: a pooler in between, or a connection that is cut silently, would lose it.
 */
export function subscribe({ url, connectTimeoutMs = 10_000 }: ConnectionOptions, listener: Listener): Subscription {
  const tenants = new Map(listener.tenants.map((tenant) => [payloadFor(tenant), tenant]))
  const self = randomUUID()
  let closed = false
  let connected = false
  let receivedHeartbeat = false
  let client: pg.Client | null = null
  let timer: NodeJS.Timeout | undefined

  const setConnected = (is: boolean): void => {
    if (connected !== is && !closed) listener.onConnected((connected = is))
  }
  const schedule = (ms: number, act: () => Promise<void>): void => {
    clearTimeout(timer)
    if (!closed) timer = setTimeout(() => void act(), ms).unref()
  }
  const reconnect = (broken: pg.Client): void => {
    if (client !== broken) return
    client = null
    setConnected(false)
    broken.end().catch(() => {})
    schedule(RECONNECT_MS, connect)
  }
  const sendHeartbeat = async (own: pg.Client): Promise<void> => {
    receivedHeartbeat = false
    try {
      await own.query('select pg_notify($1, $2)', [CHANNEL, self])
    } catch {
      return reconnect(own)
    }
    schedule(HEARTBEAT_MS, async () => (receivedHeartbeat ? sendHeartbeat(own) : reconnect(own)))
  }
  const connect = async (): Promise<void> => {
    const own = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: connectTimeoutMs,
      query_timeout: HEARTBEAT_MS,
      keepAlive: true,
      application_name: 'tidemark listening',
    })
    client = own
    own.on('error', () => reconnect(own)).on('end', () => reconnect(own))
    own.on('notification', ({ payload = '' }) => {
      if (payload === self) {
        receivedHeartbeat = true
        setConnected(true)
      }
      if (payload === 'connections' && !closed) listener.onConnectionsChange?.()
      const tenant = tenants.get(payload)
      if (tenant !== undefined && !closed) listener.onChange(tenant)
    })
    try {
      await own.connect()
      await own.query(`listen ${CHANNEL}`)
      await sendHeartbeat(own)
    } catch {
      reconnect(own)
    }
  }
  void connect()
  return {
    addTenant: (tenant) => void tenants.set(payloadFor(tenant), tenant),
    close: async () => {
      closed = true
      clearTimeout(timer)
      const own = client
      client = null
      await own?.end().catch(() => {})
    },
  }
}
